#include "runtime/process/log_keeper.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <chrono>
#include <fstream>
#include <string>

#include "runtime/core/disk_space.h"
#include "runtime/process/file_util.h"
#include "runtime/process/log_file.h"
#include "runtime/transport/blocking.h"
#include "tests/support/on_loop.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMegabyte = 1 << 20;

TEST(LogKeeper, RemovesTheOldestOfWhatHasEnded) {
  support::TemporaryFolder folder;
  const auto exists = [&](const char* name) { return fs::exists(folder.path() / name); };
  const auto age = [&](const char* name, int hours) {
    fs::last_write_time(folder.path() / name,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  LogFile open(folder.path() / "open.log");
  open.append(std::string(1000, 'x'));
  for (const char* name : {"old.log", "new.log", "open.log.1", "node.log"})
    LogFile(folder.path() / name).append(std::string(1000, 'x'));
  age("open.log", 9);
  age("node.log", 8);
  age("open.log.1", 7);
  age("old.log", 6);
  trim_logs(folder.path(), 5000);
  EXPECT_TRUE(exists("open.log.1"));  // enough room
  trim_logs(folder.path(), 3500);
  EXPECT_FALSE(exists("open.log.1") || exists("old.log"));
  EXPECT_TRUE(exists("new.log") && exists("open.log") && exists("node.log"));
  trim_logs(folder.path(), 0);
  EXPECT_FALSE(exists("new.log"));
  EXPECT_TRUE(exists("open.log") && exists("node.log"));
}

TEST(LogKeeper, BoundsTheNumberOfLogs) {
  support::TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) {
    const fs::path log = folder.path() / ("worker-" + std::to_string(i) + ".log");
    LogFile(log).append("x");
    fs::last_write_time(log, fs::file_time_type::clock::now() - std::chrono::hours(i));
  }
  trim_logs(folder.path(), kMegabyte, 5);
  EXPECT_EQ(files_in(folder.path()).size(), 5u);
  EXPECT_TRUE(fs::exists(folder.path() / "worker-4.log"));
  EXPECT_FALSE(fs::exists(folder.path() / "worker-5.log"));
}

/// A log that takes room elsewhere.
struct FakeLog final : RoomLog {
  explicit FakeLog(std::uint64_t size) : size_now(size) {}
  std::uint64_t bytes() const override { return size_now; }
  void cut() override {
    ++cuts;
    size_now = 0;
  }
  void leave_room() override { left = true; }

  std::uint64_t size_now;
  int cuts = 0;
  bool left = false;
};

TEST(LogKeeper, CutsTheLargestOfThoseThatShareItsRoom) {
  support::TemporaryFolder folder;
  // Of another node, and stays.
  std::ofstream(folder.path() / "node.log") << std::string(300 << 10, 'x');
  EventLoop loop;
  FakeLog small(20 << 10), large(100 << 10), gone(200 << 10);
  on_loop(loop, [&] {
    LogKeeper keeper(loop, {.folder = folder.path(), .bytes_max = LogKeeper::kBytesMin});
    for (FakeLog* log : {&small, &large, &gone}) keeper.add(*log);
    keeper.remove(gone);
    EXPECT_FALSE(keeper.admit(1000)) << "nothing is free after all";
    EXPECT_EQ(keeper.file_bytes_max(), LogKeeper::kBytesMin / 4);
    return 0;
  });
  EXPECT_EQ(large.cuts, 1);
  EXPECT_EQ(small.cuts, 0);
  EXPECT_TRUE(small.left && large.left) << "the keeper has ended";
  EXPECT_EQ(gone.cuts, 0);
  EXPECT_FALSE(gone.left);
}

/// Logs on a disk of 8 MiB.
class SmallDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("none", disk_.path().c_str(), "tmpfs", 0, "size=8m") != 0)
      GTEST_SKIP() << "needs the right to mount";
    fs::create_directory(logs());
    on_loop(loop_, [&] {
      keeper_ = std::make_unique<LogKeeper>(loop_, LogKeeperOptions{.folder = logs()});
      return 0;
    });
  }
  void TearDown() override {
    on_loop(loop_, [&] {
      open_.clear();
      keeper_.reset();
      return 0;
    });
    ::umount2(disk_.path().c_str(), MNT_DETACH);
  }
  fs::path logs() const { return disk_.path() / "logs"; }
  LogFile& open(const std::string& name) {
    open_.push_back(std::make_unique<LogFile>(logs() / name, LogFile::kBytesMax, keeper_.get()));
    return *open_.back();
  }
  std::uint64_t logs_bytes() const {
    std::uint64_t sum = 0;
    for (const FolderFile& file : files_in(logs())) sum += file.bytes;
    return sum;
  }
  std::uint64_t free_bytes() const { return disk_space(disk_.path())->free_bytes; }
  void fill(std::uint64_t bytes) const {
    std::ofstream(disk_.path() / "filler") << std::string(bytes, 'f') << std::flush;
  }
  static void write(LogFile& log, int lines) {
    for (int i = 0; i < lines; ++i) log.append(std::string(1023, 'x') + "\n");
  }

  support::TemporaryFolder disk_;
  EventLoop loop_;
  std::unique_ptr<LogKeeper> keeper_;
  std::vector<std::unique_ptr<LogFile>> open_;
};

TEST_F(SmallDisk, AChattyProcessHasAQuarterOfItAndTheEndOfItsLogStays) {
  on_loop(loop_, [&] {
    LogFile& log = open("worker-1.log");
    write(log, 20'000);
    EXPECT_EQ(log.lost_bytes(), 0u) << "what is new has room";
    log.append("the end\n");
    return 0;
  });
  EXPECT_LE(logs_bytes(), 2 * kMegabyte);
  EXPECT_GE(logs_bytes(), kMegabyte / 2) << "and some of what was before";
  EXPECT_TRUE(read_file(logs() / "worker-1.log", 4 * kMegabyte)->ends_with("the end\n"));
}

TEST_F(SmallDisk, ManyChattyProcessesShareIt) {
  on_loop(loop_, [&] {
    for (int i = 0; i < 30; ++i) open("worker-" + std::to_string(i) + ".log");
    for (int round = 0; round < 50; ++round) {
      for (const auto& log : open_) write(*log, 20);
    }
    for (const auto& log : open_) EXPECT_EQ(log->lost_bytes(), 0u) << log->path();
    return 0;
  });
  EXPECT_LE(logs_bytes(), 2 * kMegabyte + 64 * 1024);
  std::size_t cut = 0;
  for (const auto& log : open_) {
    const std::string text = *read_file(log->path(), 4 * kMegabyte);
    cut += text.find("bytes were removed from here") != std::string::npos;
  }
  EXPECT_GT(cut, 0u) << "who loses his beginning is told";
}

TEST_F(SmallDisk, LogsOfTheEndedGoBeforeThoseOfTheLivingAreCut) {
  on_loop(loop_, [&] {
    write(open("ended.log"), 400);
    open_.clear();
    write(open("living.log"), 300);
    write(open("chatty.log"), 1500);
    write(open("chattier.log"), 3000);
    return 0;
  });
  EXPECT_FALSE(fs::exists(logs() / "ended.log"));
  EXPECT_EQ(read_file(logs() / "living.log", 4 * kMegabyte)->size(), 300u << 10);
}

TEST_F(SmallDisk, LeavesTheReserveOfADiskThatOthersFillAndGoesOnAfterwards) {
  fill(7 * kMegabyte - 300'000);
  on_loop(loop_, [&] {
    LogFile& log = open("worker-1.log");
    write(log, 5000);
    return 0;
  });
  EXPECT_GE(free_bytes(), kMegabyte - (4 << 10)) << "an eighth";
  fill(8 * kMegabyte);  // now they take that, too
  on_loop(loop_, [&] {
    write(*open_[0], 100);
    EXPECT_GT(open_[0]->lost_bytes(), 0u);
    return 0;
  });
  fs::remove(disk_.path() / "filler");
  EXPECT_TRUE(comes_true(loop_, [&] {
    open_[0]->append("after\n");
    return open_[0]->lost_bytes() == 0;
  }));
  EXPECT_NE(
      read_file(logs() / "worker-1.log", 8 * kMegabyte)->find("could not be written here]\nafter"),
      std::string::npos);
}

TEST_F(SmallDisk, ALogMayLastLongerThanTheKeeper) {
  on_loop(loop_, [&] {
    LogFile& log = open("worker-1.log");
    write(log, 10);
    keeper_.reset();
    log.append("the end\n");
    open_.clear();
    return 0;
  });
  EXPECT_TRUE(read_file(logs() / "worker-1.log", kMegabyte)->ends_with("the end\n"));
}

TEST_F(SmallDisk, FollowsWhatOthersLeaveFree) {
  on_loop(loop_, [&] {
    write(open("worker-1.log"), 1500);
    write(open("worker-2.log"), 1500);
    return 0;
  });
  const std::uint64_t before = logs_bytes();
  EXPECT_GT(before, kMegabyte);
  fill(5 * kMegabyte);
  on_loop(loop_, [&] {
    keeper_->look();
    return 0;
  });
  EXPECT_LT(logs_bytes(), before) << "older halves went";
  EXPECT_LE(logs_bytes(), (free_bytes() + logs_bytes()) / 4 + 64 * 1024);
}

}  // namespace
}  // namespace runtime
