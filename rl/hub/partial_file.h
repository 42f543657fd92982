// A blob in transit: the bytes that are there, and their hash so far.
#pragma once

#include <sodium.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// A file that grows at its end. Not thread-safe; a lock keeps other processes away.
class PartialFile {
 public:
  /// Opens or makes the file, and reads what is there for the hash. Longer than `bytes_max`: begins
  /// again.
  static runtime::Result<PartialFile> open(const std::filesystem::path& path,
                                           std::uint64_t bytes_max);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  std::uint64_t bytes() const { return bytes_; }

  /// kResourceExhausted: the disk is full. kInvalidArgument: more than `bytes_max`, which is what
  /// the hub announced.
  runtime::Status append(std::span<const std::byte> bytes);

  /// Throws everything away.
  runtime::Status restart();

  /// 64 hexadecimal digits, of the bytes so far. Call once.
  std::string sha256();

  /// Syncs and renames it to its final place.
  runtime::Status finish(const std::filesystem::path& path);

 private:
  PartialFile(std::filesystem::path path, int fd, std::uint64_t bytes_max);

  std::filesystem::path path_;
  int fd_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  crypto_hash_sha256_state hash_;
};

}  // namespace rl
