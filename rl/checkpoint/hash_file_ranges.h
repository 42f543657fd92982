// Hashes of ranges of files, read on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct FileRange {
  std::size_t file = 0;  // index of its path
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

enum class ReadHow { kThroughPageCache, kPastPageCache };

/// XXH3-128 of each range, as 32 hex digits. Errors of a range: as errno says, with the path; the
/// file ends before the range does. Reads files of any size with a few MiB a thread.
std::vector<runtime::Result<std::string>> hash_file_ranges(
    const std::vector<std::filesystem::path>& paths, const std::vector<FileRange>& ranges,
    ReadHow how);

/// How long a file is. kInvalidArgument: it is none, but a folder or a device, say.
runtime::Result<std::uint64_t> regular_file_bytes(const std::filesystem::path& path);

/// Forces what any process wrote of a file to the disk.
runtime::Status sync_file(const std::filesystem::path& path);

}  // namespace rl
