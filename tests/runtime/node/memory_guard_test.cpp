#include "runtime/node/memory_guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class MemoryUseTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    std::ofstream(folder_.path() / file) << text;
  }
  support::TemporaryFolder folder_;
};

TEST_F(MemoryUseTest, IsThatOfTheMachineWithoutACgroup) {
  write("proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n");
  MemoryUse use = memory_use(folder_.path());
  EXPECT_EQ(use.used_bytes, 600u << 10);
  EXPECT_EQ(use.limit_bytes, 1000u << 10);
  EXPECT_EQ(use.whose, "the machine");
}

TEST_F(MemoryUseTest, IsThatOfTheFullestCgroupAroundTheProcess) {
  write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/memory.max", "100000");
  write("sys/fs/cgroup/a/memory.current", "95000");
  write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 5000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max");
  write("sys/fs/cgroup/a/b/memory.current", "95000");
  MemoryUse use = memory_use(folder_.path());
  EXPECT_EQ(use.used_bytes, 90000u);
  EXPECT_EQ(use.limit_bytes, 100000u);
  EXPECT_EQ(use.whose, "cgroup /a");
}

TEST_F(MemoryUseTest, KnowsTheFirstVersionOfCgroups) {
  write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  write("proc/self/cgroup", "5:cpu:/x\n4:memory:/m\n");
  write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "200000");
  write("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "190000");
  write("sys/fs/cgroup/memory/m/memory.stat", "inactive_file 1\ntotal_inactive_file 10000\n");
  EXPECT_EQ(memory_use(folder_.path()).used_bytes, 180000u);
}

TEST(OwnMemory, CountsWhatAProcessHasToItself) {
  EXPECT_GT(own_memory_bytes(::getpid()), 100u << 10);
  EXPECT_EQ(own_memory_bytes(999'999'999), 0u);
}

class MemoryGuardTest : public ::testing::Test {
 protected:
  std::unique_ptr<MemoryGuard> guard(double threshold) {
    MemoryGuard::Callbacks callbacks;
    callbacks.use = [this] { return MemoryUse{used_, 1000 << 20, "the machine"}; };
    callbacks.workers = [this] {
      std::vector<GuardedWorker> workers;
      for (const auto& [pid, bytes] : memory_)
        workers.push_back({ids_.at(pid), pid, "actor A" + std::to_string(pid)});
      return workers;
    };
    callbacks.own_memory = [this](pid_t pid) { return memory_.at(pid); };
    callbacks.stop = [this](const WorkerId& worker, const std::string& reason) {
      for (const auto& [pid, id] : ids_) {
        if (id == worker) stopped_.push_back(pid);
      }
      reason_ = reason;
    };
    callbacks.give_back = [this] { return std::exchange(unused_, 0); };
    MemoryGuardOptions options;
    options.threshold = threshold;
    options.period = 1h;  // looks are the test's
    return std::make_unique<MemoryGuard>(loop_, "33aa", options, callbacks);
  }

  EventLoop loop_;
  std::uint64_t used_ = 0;
  std::uint64_t unused_ = 0;
  std::map<pid_t, WorkerId> ids_{
      {1, WorkerId::random()}, {2, WorkerId::random()}, {3, WorkerId::random()}};
  std::map<pid_t, std::uint64_t> memory_{{1, 500 << 20}, {2, 10 << 20}, {3, 10 << 20}};
  std::vector<pid_t> stopped_;
  std::string reason_;
  Deadline now_ = std::chrono::steady_clock::now();
};

TEST_F(MemoryGuardTest, StopsTheWorkerThatGrewMostAndSaysWhy) {
  auto watching = guard(0.9);
  used_ = 600 << 20;
  watching->look(now_);
  EXPECT_TRUE(stopped_.empty());
  memory_[2] = 310 << 20;
  memory_[3] = 20 << 20;
  used_ = 920 << 20;
  watching->look(now_ + 5s);
  ASSERT_EQ(stopped_, std::vector<pid_t>{2}) << "not the largest";
  for (const char* part : {"node 33aa", "0.90 GiB of 0.98 GiB", "the machine", "90 %",
                           "actor A2 (pid 2)", "0.30 GiB", "0.29 GiB more than 5 s before"}) {
    EXPECT_NE(reason_.find(part), std::string::npos) << part << " in: " << reason_;
  }
  watching->look(now_ + 6s);
  EXPECT_EQ(stopped_.size(), 1u) << "its memory is not back yet";
  memory_.erase(2);
  watching->look(now_ + 10s);
  EXPECT_EQ(stopped_, (std::vector<pid_t>{2, 3})) << "still short";
}

TEST_F(MemoryGuardTest, StopsTheLargestWhenNoneHasGrown) {
  auto watching = guard(0.9);
  used_ = 950 << 20;
  watching->look(now_);
  EXPECT_EQ(stopped_, std::vector<pid_t>{1});
}

TEST_F(MemoryGuardTest, StopsNoWorkerWhileUnusedMemoryGoesBack) {
  auto watching = guard(0.9);
  used_ = 950 << 20;
  unused_ = 100 << 20;
  watching->look(now_);
  EXPECT_TRUE(stopped_.empty());
  watching->look(now_ + 1s);  // it has not helped
  EXPECT_EQ(stopped_, std::vector<pid_t>{1});
  memory_.erase(1);
  unused_ = 1 << 20;  // too little to matter
  watching->look(now_ + 10s);
  EXPECT_EQ(stopped_.size(), 2u);
}

TEST_F(MemoryGuardTest, GrowthOfLongAgoDoesNotCount) {
  auto watching = guard(0.9);
  watching->look(now_);
  memory_[2] = 300 << 20;
  watching->look(now_ + 1s);
  for (int second = 2; second < 70; ++second) watching->look(now_ + std::chrono::seconds(second));
  memory_[3] = 50 << 20;
  used_ = 950 << 20;
  watching->look(now_ + 71s);
  EXPECT_EQ(stopped_, std::vector<pid_t>{3});
}

}  // namespace
}  // namespace runtime
