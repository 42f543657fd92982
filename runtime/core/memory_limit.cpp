#include "runtime/core/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace runtime {

namespace {

namespace fs = std::filesystem;

/// The least limit of `group` and the groups around it. "max" does not parse and is none.
std::uint64_t least_limit(const fs::path& hierarchy, const std::string& group, const char* file) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (fs::path at = fs::path(group).relative_path();; at = at.parent_path()) {
    std::uint64_t limit = 0;
    if (std::ifstream(hierarchy / at / file) >> limit && limit > 0) least = std::min(least, limit);
    if (at.empty()) return least;
  }
}

/// Whether `controllers`, as in "cpu,memory", has memory among them.
bool controls_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::uint64_t memory_limit_bytes(const fs::path& root) {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  const fs::path cgroups = root / "sys/fs/cgroup";
  // In a container the path that /proc tells may be the host's; the container's own limit is then
  // at the top.
  bytes = std::min(bytes, least_limit(cgroups, "", "memory.max"));
  bytes = std::min(bytes, least_limit(cgroups / "memory", "", "memory.limit_in_bytes"));
  std::ifstream own(root / "proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // "0::/a/b", "4:cpu,memory:/a/b"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty()) bytes = std::min(bytes, least_limit(cgroups, group, "memory.max"));
    if (controls_memory(controllers))
      bytes = std::min(bytes, least_limit(cgroups / "memory", group, "memory.limit_in_bytes"));
  }
  return bytes;
}

}  // namespace runtime
