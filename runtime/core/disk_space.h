// DiskSpace: the free space of a disk, and how much of it may be taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/core/result.h"

namespace runtime {

struct DiskSpace {
  std::uint64_t bytes = 0;
  std::uint64_t free_bytes = 0;  // for this user
  bool operator==(const DiskSpace&) const = default;
};

/// Of the disk that `path` is on, or would be on once it is made. Errors: what the system says.
Result<DiskSpace> disk_space(const std::filesystem::path& path);

/// What logs and spilled objects leave free: an eighth of the disk, at most 64 MiB. It is for the
/// journal and other small files that must be written.
std::uint64_t kept_free_bytes(const DiskSpace& disk);

/// One part in `parts` of what is free, or taken already by the one who asks. It follows the disk
/// while others fill it, and not what is taken within the share.
std::uint64_t share_of(const DiskSpace& disk, std::uint64_t taken_bytes, std::uint64_t parts);

/// "/data/cache (disk at /data: 8388608 bytes, 4096 free)", for messages.
std::string disk_text(const std::filesystem::path& folder);

}  // namespace runtime
