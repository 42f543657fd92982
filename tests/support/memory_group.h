// MemoryGroup: a control group that counts and limits memory, where the machine lets one be made.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/support/eventually.h"

namespace support {

/// Of version 2 or 1. Removed at the end, when its processes are gone.
class MemoryGroup {
 public:
  MemoryGroup() {
    const std::string name = "starling-test-" + std::to_string(::getpid());
    for (const bool version2 : {true, false}) {
      const std::filesystem::path folder =
          std::filesystem::path("/sys/fs/cgroup") / (version2 ? "" : "memory") / name;
      std::error_code error;
      if (!std::filesystem::create_directory(folder, error)) continue;
      // Else there are no groups here, but a folder like any other, or none of memory.
      if (std::filesystem::exists(folder / "cgroup.procs", error) &&
          std::filesystem::exists(folder / limit_file(version2), error)) {
        folder_ = folder;
        version2_ = version2;
        return;
      }
      std::filesystem::remove(folder, error);
    }
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  ~MemoryGroup() { (void)remove(); }

  bool exists() const { return !folder_.empty(); }
  /// Whether the kernel has taken it over, in whole pages.
  [[nodiscard]] bool limit(std::uint64_t bytes) const {
    if (!exists()) return false;
    const std::filesystem::path file = folder_ / limit_file(version2_);
    std::ofstream(file) << bytes;
    std::uint64_t read = 0;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return std::ifstream(file) >> read && read == bytes / page * page;
  }
  /// The most that its processes have had; 0: this kernel does not say.
  std::uint64_t peak() const {
    std::uint64_t bytes = 0;
    std::ifstream(folder_ / (version2_ ? "memory.peak" : "memory.max_usage_in_bytes")) >> bytes;
    return bytes;
  }
  /// The shell command by which a shell joins it.
  std::string enter() const { return "echo $$ > " + (folder_ / "cgroup.procs").string(); }
  /// False: processes are left in it.
  bool remove() {
    if (folder_.empty() || !eventually([&] { return ::rmdir(folder_.c_str()) == 0; }))
      return folder_.empty();
    folder_.clear();
    return true;
  }

 private:
  static const char* limit_file(bool version2) {
    return version2 ? "memory.max" : "memory.limit_in_bytes";
  }

  std::filesystem::path folder_;
  bool version2_ = false;
};

}  // namespace support
