// The amount of memory that this process may use.
#pragma once

#include <cstdint>
#include <filesystem>

namespace runtime {

/// The machine's memory in bytes, or the smallest limit of the cgroups (version 2 and 1) that this
/// process is in, whichever is less. `root` is where proc and sys are looked for. (The size of
/// /dev/shm is no limit here: segments are memfds, which do not live in that mount.)
std::uint64_t memory_limit_bytes(const std::filesystem::path& root = "/");

}  // namespace runtime
