// open_pytorch: pytorch_model.bin, a zip archive of a pickle that describes the tensors and one
// stored file for each storage.
#include <algorithm>
#include <string>
#include <utility>

#include "rl/weights/pytorch.h"
#include "rl/weights/shard_index.h"
#include "rl/weights/state_dict.h"
#include "rl/weights/zip_directory.h"

namespace rl {

using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPickle = "/data.pkl";

bool begins_with(std::span<const std::byte> file, std::string_view bytes) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size())
      .starts_with(bytes);
}

// What the file is when it is no zip archive.
Status no_archive(std::span<const std::byte> file, const std::string& name) {
  constexpr std::string_view kLegacyMagic(
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  if (begins_with(file, kLegacyMagic)) {
    return runtime::unimplemented(name +
                                  ": is in the format that PyTorch wrote before version 1.6, which "
                                  "is not supported; convert it once: "
                                  "python -c \"import torch; f='" +
                                  name + "'; torch.save(torch.load(f, weights_only=True), f)\"");
  }
  if (begins_with(file, "version https://git-lfs")) {
    return runtime::invalid_argument(
        name + ": is a pointer of Git LFS, not the file itself; run git lfs pull in its folder");
  }
  return runtime::invalid_argument(
      name + ": is not a PyTorch file (a zip archive); it may be truncated, fetch it again");
}

// A tensor of one element more or less in some dimension has strides that mean nothing there.
bool row_major(const PickledTensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t d = tensor.strides.size(); d-- > 0;) {
    if (tensor.info.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.info.shape[d];
  }
  return true;
}

TensorBytes bytes_of(const PickledTensor& tensor, std::span<const std::byte> storage) {
  const std::int64_t elements = tensor.info.element_count();
  const std::int64_t size = dtype_block(tensor.info.dtype).bytes;
  if (elements == 0) return TensorBytes();
  if (row_major(tensor))
    return storage.subspan(static_cast<std::size_t>(tensor.offset * size),
                           static_cast<std::size_t>(elements * size));
  TensorBytes bytes(storage.subspan(static_cast<std::size_t>(tensor.offset * size)));
  bytes.strides = tensor.strides;
  return bytes;
}

}  // namespace

Result<FileTensors> read_pytorch_tensors(std::span<const std::byte> file, const std::string& name) {
  if (!begins_with(file, "PK")) return no_archive(file, name);
  Result<ZipDirectory> files = read_zip_directory(file, name);
  if (!files.ok()) return files.status();
  // All lie in one folder, named after the file that was written.
  const auto pickle = std::find_if(files->begin(), files->end(), [](const auto& entry) {
    return entry.first.ends_with(kPickle);
  });
  if (pickle == files->end()) {
    return runtime::invalid_argument(
        name + ": is a zip archive without a data.pkl, so not one of torch.save");
  }
  const std::string folder(pickle->first.substr(0, pickle->first.size() - kPickle.size() + 1));
  if (files->contains(folder + "code/") || files->contains(folder + "constants.pkl")) {
    return runtime::unimplemented(
        name + ": is a TorchScript program, not weights; save model.state_dict() instead");
  }
  if (const auto order = files->find(folder + "byteorder");
      order != files->end() && !begins_with(order->second, "little")) {
    return runtime::unimplemented(name +
                                  ": was written on a big-endian machine; load it with torch there "
                                  "and save it as safetensors");
  }
  auto pickled = parse_state_dict(pickle->second, name);
  if (!pickled.ok()) return pickled.status();
  FileTensors tensors;
  for (PickledTensor& tensor : *pickled) {
    const std::string what = name + ": tensor " + tensor.info.name;
    const auto storage = files->find(folder + "data/" + tensor.storage);
    if (storage == files->end())
      return runtime::invalid_argument(what + " is in a file data/" + tensor.storage +
                                       " that is not in the archive; fetch it again");
    const auto wanted = static_cast<std::uint64_t>(tensor.storage_count);
    if (storage->second.size() / static_cast<std::uint64_t>(dtype_block(tensor.info.dtype).bytes) <
        wanted) {
      return runtime::invalid_argument(what + " says its storage has " + std::to_string(wanted) +
                                       " elements, of which the archive holds fewer (" +
                                       std::to_string(storage->second.size()) +
                                       " bytes); fetch it again");
    }
    tensors.bytes.push_back(bytes_of(tensor, storage->second));
    tensors.infos.push_back(std::move(tensor.info));
  }
  return tensors;
}

Result<std::unique_ptr<WeightSource>> open_pytorch(const fs::path& folder_or_file) {
  fs::path file = folder_or_file;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    const bool single = fs::exists(file / kPytorchFile, ignored);
    file /= single ? kPytorchFile : kPytorchIndexFile;
  }
  return file.string().ends_with(".index.json") ? open_sharded(file, read_pytorch_tensors)
                                                : open_single(file, read_pytorch_tensors);
}

}  // namespace rl
