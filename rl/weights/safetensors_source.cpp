// open_safetensors: one file, or the shards that an index names, as one WeightSource.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "rl/weights/mapped_file.h"
#include "rl/weights/safetensors.h"
#include "rl/weights/tensor_table.h"
#include "rl/weights/weight_source.h"

namespace rl {

using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

class SafetensorsSource final : public WeightSource {
 public:
  SafetensorsSource(std::string name, std::vector<MappedFile> files, TensorTable table)
      : name_(std::move(name)), files_(std::move(files)), table_(std::move(table)) {}

  const std::vector<TensorInfo>& tensors() const override { return table_.tensors(); }
  const TensorInfo* find(std::string_view name) const override { return table_.find(name); }
  Status read_f32(std::string_view name, std::span<float> out) const override { return table_.read_f32(name_, name, out); }
  Status read_f32_range(std::string_view name, std::int64_t first, std::span<float> out) const override {
    return table_.read_f32_range(name_, name, first, out);
  }

 private:
  std::string name_;
  std::vector<MappedFile> files_;
  TensorTable table_;
};

// Collects the tensors of one or several files on the way to a source.
struct Collector {
  std::vector<MappedFile> files;
  std::vector<TensorInfo> tensors;
  std::vector<std::span<const std::byte>> data;

  // Adds the tensors of `file` that `wanted` names (all when null). Errors list what the file lacks.
  Status add(const fs::path& file, const std::set<std::string>* wanted) {
    auto mapped = MappedFile::open(file);
    if (!mapped.ok()) return mapped.status();
    auto header = parse_safetensors(mapped->bytes(), file.string());
    if (!header.ok()) return header.status();
    std::set<std::string> missing;
    if (wanted != nullptr) missing = *wanted;
    for (SafetensorsEntry& entry : header->entries) {
      if (wanted != nullptr && missing.erase(entry.info.name) == 0) continue;
      data.push_back(mapped->bytes().subspan(header->data_offset + entry.begin, entry.end - entry.begin));
      tensors.push_back(std::move(entry.info));
    }
    if (!missing.empty()) {
      return runtime::invalid_argument(file.string() + ": lacks " + std::to_string(missing.size()) +
                                       " tensors that the index puts there, first " + *missing.begin() +
                                       "; the shard is from another checkpoint, fetch it again");
    }
    files.push_back(std::move(*mapped));  // moving keeps the mapping where it is
    return {};
  }

  std::unique_ptr<WeightSource> finish(const fs::path& path) && {
    return std::make_unique<SafetensorsSource>(path.string(), std::move(files),
                                               TensorTable(std::move(tensors), std::move(data)));
  }
};

using ShardMap = std::map<std::string, std::set<std::string>>;  // shard's file name to the tensors in it

Result<ShardMap> parse_index(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::size_t kIndexBytesMax = 256 << 20;
  if (bytes.size() > kIndexBytesMax) return runtime::invalid_argument(name + ": too long for an index");
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  auto index = nlohmann::json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  if (index.is_discarded()) return runtime::invalid_argument(name + ": not valid JSON; the file is damaged, fetch it again");
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return runtime::invalid_argument(name + ": has no object weight_map (tensor name to shard)");
  }
  ShardMap shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) return runtime::invalid_argument(name + ": weight_map." + tensor + " is not a file name");
    const auto& file = shard.get_ref<const std::string&>();
    // Shards lie beside the index; a path would let a downloaded index read other files.
    if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos) {
      return runtime::invalid_argument(name + ": weight_map." + tensor + " is not a plain file name");
    }
    shards[file].insert(tensor);
  }
  return shards;
}

Result<std::unique_ptr<WeightSource>> open_sharded(const fs::path& index_path) {
  auto mapped = MappedFile::open(index_path);
  if (!mapped.ok()) return mapped.status();
  auto shards = parse_index(mapped->bytes(), index_path.string());
  if (!shards.ok()) return shards.status();
  Collector collector;
  for (const auto& [file, tensors] : *shards) {
    const fs::path shard = index_path.parent_path() / file;
    Status status = collector.add(shard, &tensors);
    if (status.code() == runtime::ErrorCode::kNotFound) {
      return runtime::not_found(shard.string() + ": missing, though " + index_path.filename().string() +
                                " names it for tensor " + *tensors.begin() + "; fetch it beside the index");
    }
    if (!status.ok()) return status;
  }
  return std::move(collector).finish(index_path);
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_safetensors(const fs::path& folder_or_file) {
  fs::path file = folder_or_file;
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) {
    const fs::path single = file / "model.safetensors";
    const fs::path index = file / "model.safetensors.index.json";
    if (fs::exists(single, ignored)) {
      file = single;
    } else if (fs::exists(index, ignored)) {
      file = index;
    } else {
      return runtime::not_found(file.string() +
                                ": holds neither model.safetensors nor model.safetensors.index.json; give a model folder in "
                                "Hugging Face layout, or a .safetensors or .gguf file");
    }
  }
  if (file.string().ends_with(".index.json")) return open_sharded(file);
  Collector collector;
  Status status = collector.add(file, nullptr);
  if (!status.ok()) return status;
  return std::move(collector).finish(file);
}

}  // namespace rl
