// MappedFile: a whole file as read-only memory, so that opening a model costs page-table entries.
// Large parts are read rather than touched: page faults of a file that is not in memory cost
// several times what the disk takes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "runtime/core/result.h"

namespace rl {

/// Owns a read-only mapping of a regular file, and its descriptor. Movable; views of bytes() die
/// with it. Truncating the file meanwhile makes reads fault (SIGBUS): writers must replace a file
/// by rename.
class MappedFile {
 public:
  MappedFile() = default;  // maps nothing

  /// Errors name the file: kNotFound, kInvalidArgument (a folder, a pipe, unreadable),
  /// kResourceExhausted (out of address space).
  static runtime::Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

  /// Whether a view is one of bytes().
  bool contains(std::span<const std::byte> view) const;

  /// From now on read() goes past the page cache, but for what is in it, where the file system can.
  /// `path` is the file's.
  void read_past_cache(const std::filesystem::path& path);

  /// Copies a view of bytes(), which has the size of `into`, by reading the file. Any thread.
  /// Errors name
  /// the file: kUnavailable (it was cut), as errno says.
  runtime::Status read(std::span<const std::byte> view, std::span<std::byte> into) const;

 private:
  runtime::Status read_directly(off_t offset, std::span<std::byte> into) const;
  runtime::Status read_cached(off_t offset, std::span<std::byte> into) const;

  MappedFile(std::filesystem::path path, std::span<const std::byte> bytes, int fd)
      : path_(std::move(path)), bytes_(bytes), fd_(fd) {}

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  int fd_ = -1;         // of bytes_
  int direct_fd_ = -1;  // the same, past the page cache
};

}  // namespace rl
