// SharedFile: a file of a known size that several processes write together, each its own ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "rl/checkpoint/range_hasher.h"
#include "rl/weights/block_writer.h"
#include "runtime/core/result.h"

namespace rl {

/// One writer of such a file. Writers neither wait for each other nor begin in an order: whichever
/// comes first makes the file. Their ranges must not overlap. Readers see it grow, so that it
/// belongs into a folder that is hidden until all have finished (HiddenFolder). Ranges that follow
/// on each other are written together, a large file's as BlockWriter does, and hashed on the way.
/// Each writer leaves a note of the hashes next to the file (hash_note.h), for the writer of the
/// checkpoint's manifest. Errors name the file: kResourceExhausted (disk full), kInvalidArgument
/// (no permission, a file of another size), kNotFound (no such folder), kUnavailable (the
/// file was truncated meanwhile). A resource; one thread at a time.
class SharedFile {
 public:
  /// `reserves`, of one of the writers: takes all of the space now, so that a full disk is an error
  /// before anything is written.
  static runtime::Result<SharedFile> open(const std::filesystem::path& path, std::uint64_t bytes,
                                          bool reserves);

  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&&) = delete;
  ~SharedFile();

  /// At this place of the file. May keep it back until finish(), which then has its errors.
  runtime::Status write(std::uint64_t offset, std::span<const std::byte> bytes);
  runtime::Status write(std::uint64_t offset, std::string_view text) {
    return write(offset, std::as_bytes(std::span(text)));
  }

  /// What this writer wrote is on the disk, in a file that still has its size, and the note is
  /// there. Call once, last.
  runtime::Status finish();

 private:
  SharedFile(std::filesystem::path path, std::uint64_t bytes, int fd);

  std::filesystem::path path_;
  std::uint64_t bytes_ = 0;
  int fd_ = -1;
  int direct_fd_ = -1;  // past the page cache; -1: the file system has no such thing
  std::unique_ptr<RangeHasher> hasher_;
  std::unique_ptr<BlockWriter> writer_;  // to the two above, for the one above
};

}  // namespace rl
