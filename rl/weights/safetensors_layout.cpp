#include "rl/weights/safetensors_layout.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rl/weights/safetensors.h"
#include "rl/weights/tensor_table.h"

namespace rl {

using runtime::Result;

// The length word and the JSON, padded with spaces so that the tensors start on 8 bytes.
Result<SafetensorsLayout> plan_safetensors(std::span<const PlannedTensor> tensors,
                                           const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::unordered_set<std::string_view> names;
  std::vector<std::uint64_t> offsets;
  std::uint64_t data_bytes = 0;
  for (const PlannedTensor& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      return runtime::invalid_argument("tensor " + tensor.name +
                                       " is given twice, or its name is reserved");
    }
    nlohmann::json entry;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    const std::optional<std::uint64_t> bytes = tensor_bytes(tensor.shape, tensor.dtype);
    if (!bytes) return runtime::invalid_argument("tensor " + tensor.name + ": its shape is none");
    entry["data_offsets"] = {data_bytes, data_bytes + *bytes};
    header.emplace(tensor.name, std::move(entry));
    offsets.push_back(data_bytes);
    data_bytes += *bytes;
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
  SafetensorsLayout layout{
      .header = std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + json};
  layout.bytes = layout.header.size() + data_bytes;
  for (const std::uint64_t offset : offsets)
    layout.offsets.push_back(layout.header.size() + offset);
  return layout;
}

}  // namespace rl
