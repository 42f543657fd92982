// write_safetensors: header first, then the tensors in the order given, each byte range right after
// the one before.
#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "rl/weights/atomic_file.h"
#include "rl/weights/convert.h"
#include "rl/weights/safetensors.h"
#include "rl/weights/tensor_table.h"

namespace rl {

using runtime::Result;
using runtime::Status;

namespace {

// The length word and the JSON, padded with spaces so that the tensors start on 8 bytes.
// `data_bytes` gets their total.
Result<std::string> make_header(std::span<const TensorView> tensors,
                                const std::map<std::string, std::string>& metadata,
                                std::uint64_t& data_bytes) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::unordered_set<std::string_view> names;
  data_bytes = 0;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return runtime::invalid_argument("tensor " + tensor.name +
                                       " is given twice, or its name is reserved");
    }
    if (tensor_bytes(tensor.shape, DType::kF32) != tensor.data.size_bytes()) {
      return runtime::invalid_argument("tensor " + tensor.name + ": its shape does not have the " +
                                       std::to_string(tensor.data.size()) +
                                       " elements of its data");
    }
    nlohmann::json entry;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    const std::uint64_t bytes =
        tensor.data.size() * static_cast<std::uint64_t>(dtype_block(tensor.dtype).bytes);
    entry["data_offsets"] = {data_bytes, data_bytes + bytes};
    header.emplace(tensor.name, std::move(entry));
    data_bytes += bytes;
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception&) {
    return runtime::invalid_argument("a tensor name or a metadata value is not UTF-8");
  }
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kSafetensorsHeaderBytesMax)
    return runtime::invalid_argument("too many tensors for one file's header");
  const std::uint64_t length = json.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes + json;
}

// A half reaches to 65504; what rounds beyond it would become infinity, and the model with it.
Status check_range(std::span<const float> values, DType dtype) {
  constexpr float kRoundsToInfinity = 65520.0F;
  if (dtype != DType::kF16) return {};
  for (const float value : values) {
    if (std::isfinite(value) && std::abs(value) >= kRoundsToInfinity) {
      return runtime::invalid_argument(
          "holds " + std::to_string(value) +
          ", which is beyond float16 (65504); write bfloat16 or float32");
    }
  }
  return {};
}

Status write_as(AtomicFile& out, std::span<const float> values, DType dtype) {
  if (dtype == DType::kF32) return out.write(std::as_bytes(values));
  constexpr std::size_t kElementsAtOnce = 1 << 20;
  std::vector<std::byte> bytes;
  for (std::size_t first = 0; first < values.size(); first += kElementsAtOnce) {
    const auto part = values.subspan(first, std::min(kElementsAtOnce, values.size() - first));
    bytes.resize(part.size() * static_cast<std::size_t>(dtype_block(dtype).bytes));
    if (Status status = check_range(part, dtype); !status.ok()) return status;
    convert_from_f32(dtype, part, bytes.data());
    if (Status status = out.write(bytes); !status.ok()) return status;
  }
  return {};
}

}  // namespace

Status write_safetensors(const std::filesystem::path& file, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::uint64_t data_bytes = 0;
  auto header = make_header(tensors, metadata, data_bytes);
  if (!header.ok()) return header.status().with_context(file.string());
  auto out = AtomicFile::create(file, header->size() + data_bytes);
  if (!out.ok()) return out.status();
  Status status = out->write(*header);
  for (const TensorView& tensor : tensors) {
    if (!status.ok()) return status;
    status = write_as(*out, tensor.data, tensor.dtype);
    if (status.code() == runtime::ErrorCode::kInvalidArgument)
      status = status.with_context(file.string() + ": " + tensor.name);
  }
  return status.ok() ? out->commit() : status;
}

}  // namespace rl
