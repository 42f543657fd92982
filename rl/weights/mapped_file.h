// MappedFile: a whole file as read-only memory, so that opening a model costs page-table entries
// and reading it costs page faults.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "runtime/core/result.h"

namespace rl {

/// Owns a read-only mapping of a regular file. Movable; views of bytes() die with it.
/// Truncating the file meanwhile makes reads fault (SIGBUS): writers must replace a file by rename.
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

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace rl
