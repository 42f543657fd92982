// SpillFolder: extents of a full store as files, one each. Private to runtime/store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/core/result.h"

namespace runtime::object_detail {

/// write() and read() block for the disk; any thread, one at a time for each extent. The files mean
/// nothing to a later store. They are not made durable, and what a dead one left is removed when
/// the folder is opened.
class SpillFolder {
 public:
  /// Makes the folder. Errors: kInvalidArgument, kUnavailable, naming it.
  static Result<std::unique_ptr<SpillFolder>> open(std::filesystem::path path);
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;
  /// Removes the files, and the folder if nothing else is in it.
  ~SpillFolder();

  /// All or nothing. Errors: kResourceExhausted (no space but what is kept free for the journal),
  /// naming the folder.
  Status write(std::uint64_t extent, std::span<const std::byte> bytes);
  /// Errors: kObjectLost when the file is not there in full, or not as it was written, naming it.
  Status read(std::uint64_t extent, std::span<std::byte> out);
  void remove(std::uint64_t extent);
  /// The next write() or read() finds that error (of errno); 0: none. For simulations.
  void fail_next(int error) { next_error_ = error; }

  const std::filesystem::path& path() const { return path_; }
  /// The bytes that the disk has left.
  std::uint64_t free_bytes() const;

 private:
  explicit SpillFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path file(std::uint64_t extent) const;
  void remove_all();
  bool has_room(std::uint64_t bytes) const;

  const std::filesystem::path path_;
  int next_error_ = 0;
};

}  // namespace runtime::object_detail
