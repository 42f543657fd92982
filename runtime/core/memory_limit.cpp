#include "runtime/core/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "runtime/core/cgroup.h"

namespace runtime {

namespace {

namespace fs = std::filesystem;

/// "max" does not parse and is none; version 1 writes a number beyond all memory.
std::uint64_t memory_limit_of(const CgroupFolder& group) {
  std::uint64_t limit = 0;
  std::ifstream(group.path / (group.is_v2 ? "memory.max" : "memory.limit_in_bytes")) >> limit;
  return limit > 0 ? limit : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

std::uint64_t memory_limit_bytes(const fs::path& root) {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  for (const CgroupFolder& group : cgroup_folders("memory", root))
    bytes = std::min(bytes, memory_limit_of(group));
  return bytes;
}

}  // namespace runtime
