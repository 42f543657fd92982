#include "rl/checkpoint/hash_note.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/core/ids.h"
#include "runtime/core/json.h"
#include "runtime/core/rest_of.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::Result;
using runtime::Status;

constexpr std::string_view kMark = ".hashes-";
constexpr std::size_t kNoteIdDigits = 8;
constexpr std::size_t kHashDigits = 32;
constexpr int kNoteFormat = 1;

Status not_a_note() { return runtime::invalid_argument("not a note of a file's hashes"); }

}  // namespace

Status write_hash_note(const fs::path& file, const HashNote& note) {
  if (note.ranges.empty()) return {};
  json ranges = json::array();
  for (const RangeHash& range : note.ranges) ranges.push_back({range.begin, range.end, range.hash});
  const json written{{"format", kNoteFormat}, {"bytes", note.bytes}, {"ranges", std::move(ranges)}};
  fs::path path = file;
  path.concat(kMark).concat(runtime::JobId::random().short_hex());
  std::ofstream out(path, std::ios::binary);
  out << written.dump();
  out.close();
  if (out) return {};
  const int error = errno;
  std::error_code ignored;
  fs::remove(path, ignored);  // half of one is no note
  return runtime::errno_status(error, path.string() + ": cannot be written");
}

bool is_hash_note(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t mark = name.rfind(kMark);
  return mark != std::string::npos && mark > 0 &&
         name.size() - mark - kMark.size() == kNoteIdDigits &&
         name.find_first_not_of("0123456789abcdef", mark + kMark.size()) == std::string::npos;
}

fs::path file_of_note(const fs::path& note) {
  const std::string name = note.string();
  return name.substr(0, name.rfind(kMark));
}

Result<HashNote> parse_hash_note(std::string_view text) {
  const json read = runtime::parse_json(text);
  const auto is_number = [](const json& value) { return value.is_number_unsigned(); };
  if (!read.is_object() || read.value("format", json()) != kNoteFormat ||
      !is_number(read.value("bytes", json())) || !read.value("ranges", json()).is_array())
    return not_a_note();
  HashNote note{read["bytes"].get<std::uint64_t>(), {}};
  for (const json& range : read["ranges"]) {
    if (!range.is_array() || range.size() != 3 || !is_number(range[0]) || !is_number(range[1]) ||
        !range[2].is_string() || range[2].get_ref<const std::string&>().size() != kHashDigits)
      return not_a_note();
    const RangeHash& added = note.ranges.emplace_back(RangeHash{
        range[0].get<std::uint64_t>(), range[1].get<std::uint64_t>(), range[2].get<std::string>()});
    if (added.begin >= added.end || added.end > note.bytes) return not_a_note();
  }
  return note;
}

HashNotes HashNotes::take(const std::vector<fs::path>& notes) {
  HashNotes taken;
  for (const fs::path& path : notes) {
    std::ifstream in(path, std::ios::binary);
    Result<HashNote> note = parse_hash_note(runtime::rest_of(in));
    if (note.ok()) taken.notes_[file_of_note(path)].push_back(*std::move(note));
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  return taken;
}

std::vector<RangeHash> HashNotes::ranges_of(const fs::path& file, std::uint64_t bytes) const {
  const auto found = notes_.find(file);
  if (found == notes_.end()) return {};
  std::vector<RangeHash> ranges;
  for (const HashNote& note : found->second) {
    if (note.bytes != bytes) return {};
    ranges.insert(ranges.end(), note.ranges.begin(), note.ranges.end());
  }
  std::ranges::sort(ranges, {}, &RangeHash::begin);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) return {};
  return ranges;
}

}  // namespace rl
