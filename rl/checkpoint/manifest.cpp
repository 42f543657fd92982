#include "rl/checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rl/checkpoint/hash_file_ranges.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

constexpr std::int64_t kManifestFormat = 2;  // 1: a hash for each file

Status damaged_manifest() { return runtime::invalid_argument("manifest.json is damaged"); }

// {"path": ..., "bytes": 5, "xxh3_128": "..."}, or "ranges": [[3, "..."], [2, "..."]] instead.
Result<std::vector<RangeHash>> ranges_from(const ordered_json& entry, std::uint64_t bytes) {
  const auto whole = entry.find("xxh3_128"), parts = entry.find("ranges");
  if (whole != entry.end()) {
    if (!whole->is_string()) return damaged_manifest();
    return std::vector<RangeHash>{{0, bytes, whole->get<std::string>()}};
  }
  if (parts == entry.end() || !parts->is_array()) return damaged_manifest();
  std::vector<RangeHash> ranges;
  std::uint64_t at = 0;
  for (const ordered_json& part : *parts) {
    const bool is_part =
        part.is_array() && part.size() == 2 && part[0].is_number_unsigned() && part[1].is_string();
    const std::uint64_t size = is_part ? part[0].get<std::uint64_t>() : 0;
    if (!is_part || size > bytes - at || (size == 0 && bytes > 0)) return damaged_manifest();
    const std::uint64_t begin = at;
    at += size;
    ranges.push_back({begin, at, part[1].get<std::string>()});
  }
  if (at != bytes || ranges.empty()) return damaged_manifest();
  return ranges;
}

Result<HashedFile> file_from(const ordered_json& entry) {
  const bool complete = entry.is_object() && entry.contains("path") && entry["path"].is_string() &&
                        entry.contains("bytes") && entry["bytes"].is_number_unsigned();
  if (!complete) return damaged_manifest();
  HashedFile file{entry["path"].get<std::string>(), entry["bytes"].get<std::uint64_t>(), {}};
  if (file.path.is_absolute() || std::ranges::find(file.path, "..") != file.path.end())
    return runtime::invalid_argument("manifest.json names a file outside of it");
  Result<std::vector<RangeHash>> ranges = ranges_from(entry, file.bytes);
  if (!ranges.ok()) return ranges.status();
  file.ranges = *std::move(ranges);
  return file;
}

// What `ranges` leave out of the file.
std::vector<FileRange> gaps_of(const HashedFile& file, std::size_t index) {
  std::vector<FileRange> gaps;
  std::uint64_t at = 0;
  const auto add_until = [&](std::uint64_t end) {
    while (at < end) {
      const std::uint64_t next =
          std::min(end, (at / RangeHasher::kRangeBytes + 1) * RangeHasher::kRangeBytes);
      gaps.push_back({index, at, next});
      at = next;
    }
  };
  for (const RangeHash& range : file.ranges) {
    add_until(range.begin);
    at = range.end;
  }
  add_until(file.bytes);
  // One that is empty has a hash, too.
  if (file.bytes == 0) gaps.push_back({index, 0, 0});
  return gaps;
}

std::vector<fs::path> paths_of(const fs::path& folder, const std::vector<HashedFile>& files) {
  std::vector<fs::path> paths;
  for (const HashedFile& file : files) paths.push_back(folder / file.path);
  return paths;
}

}  // namespace

Status as_damage(const Status& status) {
  return status.code() == runtime::ErrorCode::kResourceExhausted
             ? status
             : runtime::invalid_argument(status.message());
}

ordered_json Manifest::to_json() const {
  ordered_json list = ordered_json::array();
  for (const HashedFile& file : files) {
    ordered_json entry{{"path", file.path.string()}, {"bytes", file.bytes}};
    if (file.ranges.size() == 1) {
      entry["xxh3_128"] = file.ranges.front().hash;
    } else {
      for (const RangeHash& range : file.ranges)
        entry["ranges"].push_back({range.end - range.begin, range.hash});
    }
    list.push_back(std::move(entry));
  }
  ordered_json json{{"format", kManifestFormat}};
  if (step) json["step"] = *step;
  json["files"] = std::move(list);
  return json;
}

Result<Manifest> Manifest::from_json(const ordered_json& json) {
  Manifest manifest;
  if (!json.is_object()) return damaged_manifest();
  const auto format = json.find("format");
  if (format != json.end() && (!format->is_number_integer() || *format < 1))
    return damaged_manifest();
  if (format != json.end() && *format > kManifestFormat)
    return runtime::invalid_argument("manifest.json is of a later version of this program");
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array() || files->empty())
    return runtime::invalid_argument("manifest.json lists no files");
  for (const ordered_json& entry : *files) {
    Result<HashedFile> file = file_from(entry);
    if (!file.ok()) return file.status();
    manifest.files.push_back(*std::move(file));
  }
  const auto step = json.find("step");
  if (step != json.end() && !step->is_number_integer()) return damaged_manifest();
  if (step != json.end()) manifest.step = step->get<std::int64_t>();
  return manifest;
}

Status complete_hashes(const fs::path& folder, std::vector<HashedFile>& files) {
  std::vector<FileRange> gaps;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::vector<FileRange> of_file = gaps_of(files[i], i);
    gaps.insert(gaps.end(), of_file.begin(), of_file.end());
  }
  const std::vector<fs::path> paths = paths_of(folder, files);
  for (const fs::path& path : paths)
    if (const Status synced = sync_file(path); !synced.ok()) return synced;
  const std::vector<Result<std::string>> hashes =
      hash_file_ranges(paths, gaps, ReadHow::kPastPageCache);
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (!hashes[i].ok()) return hashes[i].status();
    files[gaps[i].file].ranges.push_back({gaps[i].begin, gaps[i].end, *hashes[i]});
  }
  for (HashedFile& file : files) std::ranges::sort(file.ranges, {}, &RangeHash::begin);
  return {};
}

Status verify_files(const fs::path& folder, const std::vector<HashedFile>& files) {
  const std::vector<fs::path> paths = paths_of(folder, files);
  std::vector<FileRange> ranges;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Result<std::uint64_t> bytes = regular_file_bytes(paths[i]);
    if (!bytes.ok()) return as_damage(bytes.status());
    if (*bytes != files[i].bytes)
      return runtime::invalid_argument(paths[i].string() + ": " + std::to_string(*bytes) +
                                       " bytes instead of " + std::to_string(files[i].bytes));
    for (const RangeHash& range : files[i].ranges) ranges.push_back({i, range.begin, range.end});
  }
  const std::vector<Result<std::string>> hashes =
      hash_file_ranges(paths, ranges, ReadHow::kThroughPageCache);
  auto hash = hashes.begin();
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const RangeHash& range : files[i].ranges) {
      const Result<std::string>& found = *hash++;
      if (!found.ok()) return as_damage(found.status());
      if (*found != range.hash)
        return runtime::invalid_argument(paths[i].string() + ": damaged, its checksum is wrong");
    }
  }
  return {};
}

}  // namespace rl
