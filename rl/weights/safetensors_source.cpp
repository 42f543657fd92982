// open_safetensors: one file, or the shards that an index names, as one WeightSource.
#include <utility>

#include "rl/weights/safetensors.h"
#include "rl/weights/shard_index.h"
#include "rl/weights/weight_source.h"

namespace rl {

using runtime::Result;
namespace fs = std::filesystem;

namespace {

Result<FileTensors> read_tensors(std::span<const std::byte> file, const std::string& name) {
  auto header = parse_safetensors(file, name);
  if (!header.ok()) return header.status();
  FileTensors tensors;
  for (SafetensorsEntry& entry : header->entries) {
    tensors.bytes.push_back(
        file.subspan(header->data_offset + entry.begin, entry.end - entry.begin));
    tensors.infos.push_back(std::move(entry.info));
  }
  return tensors;
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_safetensors(const fs::path& folder_or_file,
                                                       WeightReading reading) {
  fs::path file = folder_or_file;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    const fs::path single = file / kSafetensorsFile;
    const fs::path index = file / kSafetensorsIndexFile;
    if (fs::exists(single, ignored)) {
      file = single;
    } else if (fs::exists(index, ignored)) {
      file = index;
    } else {
      return runtime::not_found(file.string() +
                                ": holds no weights (model.safetensors or pytorch_model.bin, or "
                                "the index of either). Give a model folder in "
                                "Hugging Face layout, or a .safetensors, .bin or .gguf file");
    }
  }
  return file.string().ends_with(".index.json") ? open_sharded(file, read_tensors, reading)
                                                : open_single(file, read_tensors, reading);
}

}  // namespace rl
