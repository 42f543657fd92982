// A limit of processes and threads for what a test starts.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/eventually.h"

namespace support {

/// A control group for processes; where none can be made, the limit of the user's processes, which
/// does not hold for root.
class ProcessLimit {
 public:
  ProcessLimit() {
    for (const char* root : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      const std::filesystem::path group =
          std::filesystem::path(root) / ("starling-test-" + std::to_string(::getpid()));
      std::error_code error;
      if (!std::filesystem::create_directory(group, error)) continue;
      if (std::filesystem::exists(group / "pids.max", error)) {
        group_ = group;
        return;
      }
      std::filesystem::remove(group, error);
    }
  }
  /// Once the processes in it have ended.
  ~ProcessLimit() {
    if (!group_.empty()) (void)eventually([&] { return ::rmdir(group_.c_str()) == 0; });
  }
  ProcessLimit(const ProcessLimit&) = delete;
  ProcessLimit& operator=(const ProcessLimit&) = delete;

  bool is_there() const { return is_group() || ::geteuid() != 0; }
  /// Whether it counts what is in it, instead of the user's processes.
  bool is_group() const { return !group_.empty(); }
  void add(int pid) {
    if (is_group()) write("cgroup.procs", std::to_string(pid));
  }
  /// What is in the group, or this process (of another user than root), starts no more processes.
  void close(int pid) { set(pid, "1", 1); }
  void open(int pid) { set(pid, "max", RLIM_INFINITY); }

  /// Of a group: as many processes and threads, and how many there are.
  void allow(int count) { write("pids.max", std::to_string(count)); }
  int count() const {
    int count = 0;
    std::ifstream(group_ / "pids.current") >> count;
    return count;
  }
  /// Of a group: how often it has kept a process or thread from starting.
  int refusals() const {
    std::string word;
    int times = 0;
    std::ifstream(group_ / "pids.events") >> word >> times;  // "max N"
    return times;
  }
  /// Of a group.
  std::string file(const char* name) const { return (group_ / name).string(); }
  /// The command, to be run in the group.
  std::vector<std::string> within(const std::vector<std::string>& command) const {
    std::vector<std::string> all{"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"",
                                 (group_ / "cgroup.procs").string()};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

 private:
  void write(const char* file, const std::string& text) {
    std::ofstream out(group_ / file);
    out << text << std::flush;
    EXPECT_TRUE(out.good()) << group_ / file;
  }
  void set(int pid, const std::string& group_limit, rlim_t user_limit) {
    if (is_group()) return write("pids.max", group_limit);
    rlimit limit{};
    EXPECT_EQ(::prlimit(pid, RLIMIT_NPROC, nullptr, &limit), 0);
    limit.rlim_cur = std::min(user_limit, limit.rlim_max);
    EXPECT_EQ(::prlimit(pid, RLIMIT_NPROC, &limit, nullptr), 0);
  }

  std::filesystem::path group_;
};

}  // namespace support
