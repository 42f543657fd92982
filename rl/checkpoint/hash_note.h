// Notes that the writers of a file leave next to it: the hashes of what each of them wrote, for
// the checkpoint's manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "rl/checkpoint/range_hasher.h"
#include "runtime/core/result.h"

namespace rl {

/// What one writer hashed of a file of that size.
struct HashNote {
  std::uint64_t bytes = 0;
  std::vector<RangeHash> ranges;

  bool operator==(const HashNote&) const = default;
};

/// Leaves a note, "model.safetensors.hashes-1a2b3c4d"; none where it has no ranges. Errors: as
/// errno says, with the path; then there is no note.
runtime::Status write_hash_note(const std::filesystem::path& file, const HashNote& note);

/// Whether a file is named like a note.
bool is_hash_note(const std::filesystem::path& path);

/// The file that a note speaks of.
std::filesystem::path file_of_note(const std::filesystem::path& note);

/// kInvalidArgument: not what a note has in it.
runtime::Result<HashNote> parse_hash_note(std::string_view text);

/// What notes say, by file. Ranges are sorted, and none overlap: a file whose notes contradict each
/// other, or its size, has none. A note that cannot be read is one that is not there.
class HashNotes {
 public:
  /// Reads these notes, and removes them.
  static HashNotes take(const std::vector<std::filesystem::path>& notes);

  std::vector<RangeHash> ranges_of(const std::filesystem::path& file, std::uint64_t bytes) const;

 private:
  std::map<std::filesystem::path, std::vector<HashNote>> notes_;
};

}  // namespace rl
