// Limits of control groups, as a root folder of the test's own has them.
#include "runtime/core/cgroup.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runtime/core/cpu_limit.h"
#include "runtime/core/memory_limit.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

class Cgroup : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::vector<std::string> names(const std::string& controller) {
    std::vector<std::string> found;
    for (const CgroupFolder& group : cgroup_folders(controller, root_))
      found.push_back((group.is_v2 ? "2 " : "1 ") + group.name + " " +
                      group.path.lexically_relative(root_).string());
    return found;
  }

  support::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(Cgroup, AreTheOwnOneAndThoseAroundIt) {
  file("proc/self/cgroup", "0::/a/b\n");
  file("proc/self/mountinfo",
       "31 23 0:28 / /proc rw - proc proc rw\n41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 "
       "rw\n");
  EXPECT_EQ(names("cpu"), (std::vector<std::string>{"2 /a/b sys/fs/cgroup/a/b",
                                                    "2 /a sys/fs/cgroup/a", "2 / sys/fs/cgroup"}));
}

TEST_F(Cgroup, AreFoundWhereTheyAreMounted) {
  file("proc/self/cgroup", "12:cpuset:/x\n3:cpu,cpuacct:/job\n1:name=systemd:/s\n0::/u\n");
  file("proc/self/mountinfo",
       "32 31 0:29 / /mnt/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
       "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(names("cpu"), (std::vector<std::string>{
                              "1 /job mnt/cpu,cpuacct/job", "1 / mnt/cpu,cpuacct",
                              "2 /u sys/fs/cgroup/unified/u", "2 / sys/fs/cgroup/unified"}));
}

TEST_F(Cgroup, OfAContainerBeginAtTheTopThatItSees) {
  file("proc/self/cgroup", "4:memory:/docker/12ab/inner\n");
  file("proc/self/mountinfo",
       "35 31 0:32 /docker/12ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  EXPECT_EQ(names("memory"), (std::vector<std::string>{"1 /inner sys/fs/cgroup/memory/inner",
                                                       "1 / sys/fs/cgroup/memory"}));
  file("proc/self/cgroup", "4:memory:/../other\n");
  EXPECT_EQ(names("memory"), (std::vector<std::string>{"1 / sys/fs/cgroup/memory"}));
}

TEST_F(Cgroup, TheLeastCpuQuotaUpToTheTopCounts) {
  const double all = cpu_limit(root_);
  EXPECT_GE(all, 1);
  file("proc/self/cgroup", "0::/a/b/c\n");
  file("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  file("sys/fs/cgroup/a/cpu.max", "80000 100000\n");
  file("sys/fs/cgroup/other/cpu.max", "1000 100000\n");
  EXPECT_EQ(cpu_limit(root_), 0.5);
  file("sys/fs/cgroup/a/cpu.max", "40000 100000\n");
  EXPECT_EQ(cpu_limit(root_), 0.4);
  file("sys/fs/cgroup/a/cpu.max", "100000000 100000\n");
  file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_limit(root_), std::min(all, 1000.0));
}

TEST_F(Cgroup, CpuQuotasOfVersionOneCount) {
  const double all = cpu_limit(root_);
  file("proc/self/cgroup", "3:cpu,cpuacct:/job/7\n12:cpuset:/x\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  file("sys/fs/cgroup/cpu/job/7/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/job/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_limit(root_), all);
  file("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "25000\n");
  file("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cpu_limit(root_), 0.5);
}

TEST_F(Cgroup, MemoryLimitsAreFoundWhereTheyAreMounted) {
  file("proc/self/cgroup", "0::/a/b\n");
  file("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  file("sys/fs/cgroup/unified/a/memory.max", "200000000\n");
  file("sys/fs/cgroup/unified/a/b/memory.max", "max\n");
  EXPECT_EQ(memory_limit_bytes(root_), 200000000u);
}

}  // namespace
}  // namespace runtime
