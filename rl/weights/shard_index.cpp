#include "rl/weights/shard_index.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/core/json.h"

namespace rl {

using runtime::Result;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

class MappedSource final : public WeightSource {
 public:
  MappedSource(std::string name, std::vector<MappedFile> files, TensorTable table)
      : name_(std::move(name)), files_(std::move(files)), table_(std::move(table)) {}

  const std::vector<TensorInfo>& tensors() const override { return table_.tensors(); }
  const TensorInfo* find(std::string_view name) const override { return table_.find(name); }
  Status read_f32(std::string_view name, std::span<float> out) const override {
    return table_.read_f32(name_, name, out, files_);
  }
  Status read_f32_range(std::string_view name, std::int64_t first,
                        std::span<float> out) const override {
    return table_.read_f32_range(name_, name, first, out, files_);
  }

 private:
  std::string name_;
  std::vector<MappedFile> files_;
  TensorTable table_;
};

// Collects the tensors of one or several files on the way to a source.
struct Collector {
  WeightReading reading;
  std::vector<MappedFile> files = {};
  std::vector<TensorInfo> tensors = {};
  std::vector<TensorBytes> data = {};

  // Adds the tensors of `file` that `wanted` names (all when null). Errors list what the file
  // lacks.
  Status add(const fs::path& file, const std::set<std::string>* wanted, ReadTensors read) {
    auto mapped = MappedFile::open(file);
    if (!mapped.ok()) return mapped.status();
    if (reading == WeightReading::kPastPageCache) mapped->read_past_cache(file);
    auto found = read(mapped->bytes(), file.string());
    if (!found.ok()) return found.status();
    std::set<std::string> missing;
    if (wanted != nullptr) missing = *wanted;
    for (std::size_t i = 0; i < found->infos.size(); ++i) {
      if (wanted != nullptr && missing.erase(found->infos[i].name) == 0) continue;
      tensors.push_back(std::move(found->infos[i]));
      data.push_back(std::move(found->bytes[i]));
    }
    if (!missing.empty()) {
      return runtime::invalid_argument(file.string() + ": lacks " + std::to_string(missing.size()) +
                                       " tensors that the index puts there, first " +
                                       *missing.begin() +
                                       "; the shard is from another checkpoint, fetch it again");
    }
    files.push_back(std::move(*mapped));  // moving keeps the mapping where it is
    return {};
  }

  std::unique_ptr<WeightSource> finish(const fs::path& path) && {
    return std::make_unique<MappedSource>(path.string(), std::move(files),
                                          TensorTable(std::move(tensors), std::move(data)));
  }
};

using ShardMap =
    std::map<std::string, std::set<std::string>>;  // shard's file name to the tensors in it

Result<ShardMap> parse_index(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::size_t kIndexBytesMax = 256 << 20;
  if (bytes.size() > kIndexBytesMax)
    return runtime::invalid_argument(name + ": too long for an index");
  auto index = runtime::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (index.is_discarded())
    return runtime::invalid_argument(name +
                                     ": not valid JSON; the file is damaged, fetch it again");
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return runtime::invalid_argument(name + ": has no object weight_map (tensor name to shard)");
  }
  ShardMap shards;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string())
      return runtime::invalid_argument(name + ": weight_map." + tensor + " is not a file name");
    const auto& file = shard.get_ref<const std::string&>();
    // Shards lie next to the index; a path would let a downloaded index read other files.
    if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos) {
      return runtime::invalid_argument(name + ": weight_map." + tensor +
                                       " is not a plain file name");
    }
    shards[file].insert(tensor);
  }
  return shards;
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_single(const fs::path& file, ReadTensors read,
                                                  WeightReading reading) {
  Collector collector{.reading = reading};
  Status status = collector.add(file, nullptr, read);
  if (!status.ok()) return status;
  return std::move(collector).finish(file);
}

Result<std::unique_ptr<WeightSource>> open_sharded(const fs::path& index_path, ReadTensors read,
                                                   WeightReading reading) {
  auto mapped = MappedFile::open(index_path);
  if (!mapped.ok()) return mapped.status();
  auto shards = parse_index(mapped->bytes(), index_path.string());
  if (!shards.ok()) return shards.status();
  Collector collector{.reading = reading};
  for (const auto& [file, tensors] : *shards) {
    const fs::path shard = index_path.parent_path() / file;
    Status status = collector.add(shard, &tensors, read);
    if (status.code() == runtime::ErrorCode::kNotFound) {
      return runtime::not_found(shard.string() + ": missing, though " +
                                index_path.filename().string() + " names it for tensor " +
                                *tensors.begin() + "; fetch it into the folder of the index");
    }
    if (!status.ok()) return status;
  }
  return std::move(collector).finish(index_path);
}

}  // namespace rl
