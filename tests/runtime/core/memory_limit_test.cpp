#include "runtime/core/memory_limit.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

class MemoryLimit : public ::testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  support::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(MemoryLimit, IsTheMachinesWithoutCgroups) {
  EXPECT_EQ(memory_limit_bytes(root_), static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                           static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE)));
}

TEST_F(MemoryLimit, IsTheLeastOfTheGroupsAroundTheProcess) {
  file("proc/self/cgroup", "0::/a/b/c\n");
  file("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  file("sys/fs/cgroup/a/b/memory.max", "200000000\n");
  file("sys/fs/cgroup/a/memory.max", "300000000\n");
  file("sys/fs/cgroup/other/memory.max", "1000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 200000000u);
}

TEST_F(MemoryLimit, KnowsVersionOne) {
  file("proc/self/cgroup", "12:cpuset:/x\n4:cpu,memory:/job/7\n1:name=systemd:/\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  file("sys/fs/cgroup/memory/job/7/memory.limit_in_bytes", "150000000\n");
  file("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 150000000u);
}

TEST_F(MemoryLimit, FindsAContainersOwnLimitWhenItsPathIsTheHosts) {
  file("proc/self/cgroup", "0::/../../docker/12ab\nnonsense\n");
  file("sys/fs/cgroup/memory.max", "100000000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 100000000u);
}

}  // namespace
}  // namespace runtime
