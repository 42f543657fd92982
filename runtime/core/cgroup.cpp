#include "runtime/core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace runtime {

namespace {

namespace fs = std::filesystem;

bool is_among(const std::string& word, const std::string& comma_list) {
  return ("," + comma_list + ",").find("," + word + ",") != std::string::npos;
}

/// Where a hierarchy is mounted, and which of its groups is the top there.
struct CgroupMount {
  fs::path at;
  std::string top = "/";
  bool is_v2 = false;
};

/// Of /proc/self/mountinfo; where that says nothing, the usual places.
std::vector<CgroupMount> cgroup_mounts(const std::string& controller, const fs::path& root) {
  std::vector<CgroupMount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "31 23 0:28 /top /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"
    std::istringstream before(line), after;
    std::string id, parent, device, top, at, type, source, options;
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos || !(before >> id >> parent >> device >> top >> at)) continue;
    after.str(line.substr(dash + 3));
    if (!(after >> type >> source >> options)) continue;
    const bool is_v2 = type == "cgroup2";
    if (is_v2 || (type == "cgroup" && is_among(controller, options)))
      mounts.push_back({root / fs::path(at).relative_path(), top, is_v2});
  }
  if (mounts.empty()) {
    const fs::path usual = root / "sys/fs/cgroup";
    mounts = {{usual, "/", true}, {usual / controller, "/", false}};
  }
  return mounts;
}

/// The group in a hierarchy, as seen below `top`; the top itself where the group is not below it.
fs::path group_below(const std::string& group, const std::string& top) {
  const fs::path path = fs::path(group).lexically_relative(top);
  const bool is_outside = path.empty() || path == "." || *path.begin() == "..";
  return is_outside ? fs::path() : path;
}

}  // namespace

std::vector<CgroupFolder> cgroup_folders(const std::string& controller, const fs::path& root) {
  std::string of_v1 = "/", of_v2 = "/";
  std::ifstream own(root / "proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {  // "0::/a/b", "4:cpu,cpuacct:/a/b"
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) of_v2 = line.substr(second + 1);
    if (is_among(controller, controllers)) of_v1 = line.substr(second + 1);
  }
  std::vector<CgroupFolder> folders;
  for (const CgroupMount& mount : cgroup_mounts(controller, root)) {
    for (fs::path at = group_below(mount.is_v2 ? of_v2 : of_v1, mount.top);;
         at = at.parent_path()) {
      folders.push_back({at.empty() ? mount.at : mount.at / at, "/" + at.string(), mount.is_v2});
      if (at.empty()) break;
    }
  }
  return folders;
}

}  // namespace runtime
