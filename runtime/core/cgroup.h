// The control groups that this process is in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace runtime {

struct CgroupFolder {
  std::filesystem::path path;
  std::string name;  // "/a/b", from the top that this process sees
  bool is_v2 = false;
};

/// The folders that limits of `controller` ("cpu", "memory", "pids") are read from. They are those
/// of this process's group and of each around it, up to the top. Versions 1 and 2 both count,
/// wherever they are mounted. A container's own group may be the top. They need not have a limit,
/// nor be there. `root` is where proc and sys are looked for.
std::vector<CgroupFolder> cgroup_folders(const std::string& controller,
                                         const std::filesystem::path& root = "/");

}  // namespace runtime
