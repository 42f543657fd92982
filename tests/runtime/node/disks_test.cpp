// Small and full disks under a cluster's logs, journal, caches and spilled objects.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/control/key_value_client.h"
#include "runtime/core/disk_space.h"
#include "runtime/process/cache_folder.h"
#include "runtime/process/file_util.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t kMiB = 1 << 20;

class FullDisk : public ClusterTest {
 protected:
  /// A separate disk for the test; false where nothing can be mounted.
  bool mount(const std::string& size) {
    fs::create_directory(disk_);
    is_mounted_ =
        ::mount("none", disk_.c_str(), "tmpfs", 0, ("mode=0700,size=" + size).c_str()) == 0;
    return is_mounted_;
  }
  void TearDown() override {
    ClusterTest::TearDown();
    moved_.reset();
    if (is_mounted_) ::umount2(disk_.c_str(), MNT_DETACH);
  }
  std::uint64_t free_bytes() const { return disk_space(disk_)->free_bytes; }
  /// Takes all that is free.
  void fill() const {
    std::ofstream(disk_ / "filler") << std::string(64 * kMiB, 'f') << std::flush;
  }
  void make_old_file(const fs::path& file, std::uint64_t bytes) const {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << std::string(bytes, 'o') << std::flush;
    const timespec long_ago[2] = {{1'500'000'000, 0}, {1'500'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0), 0);
  }
  /// `starling list jobs`: states by how many there are.
  std::map<std::string, int> jobs() {
    std::map<std::string, int> states;
    const CommandResult list = starling({"list", "jobs", "--json"});
    if (list.code != 0) return states;
    for (const Json& job : Json::parse(list.out)) ++states[job["state"].get<std::string>()];
    return states;
  }
  static Status put(TestDriver& driver, const std::string& key) {
    const Deadline deadline = deadline_after(std::chrono::seconds(10));
    return wait_done(driver.loop(), deadline, [&](auto done) {
      KeyValueClient(driver.client()).put(key, "value", deadline, done);
    });
  }

  const support::TemporaryFolder place_;
  const fs::path disk_ = place_.path() / "d";
  std::unique_ptr<support::ScopedVariable> moved_;  // until the cluster is down
  bool is_mounted_ = false;
};

TEST_F(FullDisk, AChattyActorKeepsNoOtherFromWorking) {
  if (!mount("6m")) GTEST_SKIP() << "needs the right to mount";
  moved_ =
      std::make_unique<support::ScopedVariable>("STARLING_SESSION_ROOT", (disk_ / "s").c_str());
  const std::string head = start_head();
  auto chatty = TestDriver::connect(head);
  ASSERT_TRUE(chatty.ok()) << chatty.status().to_string();
  auto actor = (*chatty)->create("Chatty");  // 20 MB
  ASSERT_TRUE(actor.ok()) << actor.status().to_string();
  EXPECT_GT(free_bytes(), kMiB);
  {
    auto other = TestDriver::connect(head);
    ASSERT_TRUE(other.ok()) << other.status().to_string();
    auto echo = (*other)->create("Echo");
    ASSERT_TRUE(echo.ok()) << echo.status().to_string();
    EXPECT_TRUE(put(**other, "key").ok());
  }
  const fs::path log = session_of(head).dir / "logs" / ("worker-" + actor->worker.hex() + ".log");
  EXPECT_TRUE(read_file(log, 8 * kMiB)->ends_with("the end\n")) << "what is new stays";
  chatty->reset();
  EXPECT_TRUE(eventually([&] { return !process_runs(actor->pid); }, std::chrono::seconds(20)));
  EXPECT_TRUE(eventually([&] { return jobs()["running"] == 0 && jobs().size() == 1; },
                         std::chrono::seconds(20)));
}

TEST_F(FullDisk, TheJournalHasAReserveForJobsActorsAndTheirEnds) {
  if (!mount("8m")) GTEST_SKIP() << "needs the right to mount";
  const fs::path journal = disk_ / "journal";
  const std::string head = start_head({"--journal", journal.string()});
  auto before = TestDriver::connect(head);
  ASSERT_TRUE(before.ok()) << before.status().to_string();
  auto echo = (*before)->create("Echo");
  ASSERT_TRUE(echo.ok()) << echo.status().to_string();
  fill();
  for (int i = 0; i < 20; ++i) {
    auto next = TestDriver::connect(head);
    ASSERT_TRUE(next.ok()) << next.status().to_string();
    auto made = (*next)->create("Echo");
    ASSERT_TRUE(made.ok()) << made.status().to_string();
  }
  before->reset();
  EXPECT_TRUE(eventually([&] { return !process_runs(echo->pid); }, std::chrono::seconds(20)));
  EXPECT_TRUE(eventually([&] { return jobs()["running"] == 0; }, std::chrono::seconds(20)));
  // What would use it up is refused.
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  const Status refused = put(**driver, "key");
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted) << refused.to_string();
  EXPECT_NE(refused.message().find(journal.string()), std::string::npos) << refused.message();
  // The head comes back on the full disk, and knows it all.
  const int child = child_of(session_of(head).pid, "head");
  ::kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(child) && jobs()["running"] == 1; },
                         std::chrono::seconds(20)));
  fs::remove(disk_ / "filler");
  EXPECT_TRUE(eventually([&] { return put(**driver, "key").ok(); }, std::chrono::seconds(20)));
  driver->reset();
}

TEST_F(FullDisk, AJobWhoseEndCannotBeRecordedHasItsProcessesEnded) {
  if (!mount("8m")) GTEST_SKIP() << "needs the right to mount";
  const fs::path journal = disk_ / "journal";
  const std::string head = start_head({"--journal", journal.string()});
  const std::string node = start_node(head);
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  std::vector<int> pids;
  for (const std::string& address : {head, node}) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Echo";
    spec.node = session_of(address).node;
    auto made = (*driver)->create(spec);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    pids.push_back(made->pid);
  }
  fs::resize_file(journal / "reserve", 0);
  fill();
  driver->reset();
  EXPECT_TRUE(eventually([&] { return !process_runs(pids[0]) && !process_runs(pids[1]); },
                         std::chrono::seconds(20)));
  EXPECT_NE(TestDriver::connect(head).status().message().find("disk is full"), std::string::npos);
  fs::remove(disk_ / "filler");
  EXPECT_TRUE(eventually([&] { return jobs()["running"] == 0 && !jobs().empty(); },
                         std::chrono::seconds(20)));
  EXPECT_TRUE(eventually([&] { return TestDriver::connect(head).ok(); }, std::chrono::seconds(20)))
      << "all goes on";
}

TEST_F(FullDisk, AJobsFilesTakeThePlaceOfOldOnes) {
  if (!mount("8m")) GTEST_SKIP() << "needs the right to mount";
  moved_ = std::make_unique<support::ScopedVariable>("STARLING_CACHE", (disk_ / "c").c_str());
  for (const char* cache : {"files", "programs"})
    ASSERT_TRUE(make_cache_folder(disk_ / "c" / cache).ok());
  make_old_file(disk_ / "c/files" / std::string(64, 'a'), 2 * kMiB);
  make_old_file(disk_ / "c/programs" / std::string(32, 'b') / "driver", 2 * kMiB);
  make_old_file(disk_ / "c/programs" / std::string(32, 'c') / "driver", 2 * kMiB);
  start_head();
  const support::TemporaryFolder work;
  std::ofstream(work.path() / "data") << std::string(3 * kMiB, 'd') << std::flush;
  for (int i = 0; i < 3; ++i) {  // on the disk twice: in the cache, and in the job's folder
    const CommandResult run =
        starling({"submit", "--working-dir", work.path().string(), "--", "wc", "-c", "data"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.out, std::to_string(3 * kMiB) + " data\n");
  }
  std::ofstream(work.path() / "data") << std::string(9 * kMiB, 'd') << std::flush;
  const CommandResult large =
      starling({"submit", "--working-dir", work.path().string(), "--", "wc", "-c", "data"});
  EXPECT_NE(large.code, 0);
  for (const std::string& named :
       {(disk_ / "c/files").string(), "disk at " + disk_.string(), std::string("STARLING_CACHE")})
    EXPECT_NE(large.err.find(named), std::string::npos) << large.err;
}

TEST_F(FullDisk, WhatAKilledNodeSpilledGoesWithTheNextStart) {
  const support::TemporaryFolder shared;
  // Where the user says, and in the session's folder.
  for (const bool is_named : {true, false}) {
    const std::vector<std::string> options =
        is_named ? std::vector<std::string>{"--spill-dir", shared.path().string()}
                 : std::vector<std::string>();
    const SessionInfo dead = session_of(start_head(options));
    const SessionInfo living = session_of(start_head(options));
    const auto spill_of = [&](const SessionInfo& node) {
      return (is_named ? shared.path() : node.dir) / ("spill-" + node.node.hex());
    };
    for (const SessionInfo& node : {dead, living})
      std::ofstream(spill_of(node) / "1.spill") << std::string(kMiB, 'x') << std::flush;
    ::kill(dead.pid, SIGKILL);
    ASSERT_TRUE(eventually([&] { return !process_runs(dead.pid); }));
    EXPECT_TRUE(fs::exists(spill_of(dead) / "1.spill"));
    start_head(options);
    EXPECT_FALSE(fs::exists(spill_of(dead))) << spill_of(dead);
    EXPECT_TRUE(fs::exists(spill_of(living) / "1.spill")) << spill_of(living);
    while (!running_sessions().empty())
      ASSERT_EQ(starling({"stop", "--address", running_sessions()[0].address}).code, 0);
    EXPECT_FALSE(fs::exists(spill_of(living)));
  }
  EXPECT_TRUE(fs::is_empty(shared.path()));
}

TEST_F(FullDisk, LogsOfProcessesThatWroteNothingDoNotPileUp) {
  const SessionInfo session = session_of(start_head());
  {
    auto driver = TestDriver::connect(session.address, /*warm_workers=*/5);
    ASSERT_TRUE(driver.ok()) << driver.status().to_string();
    ASSERT_TRUE((*driver)->create("Echo").ok());
  }
  const CommandResult silent = starling({"submit", "--detach", "--", "true"});
  ASSERT_EQ(silent.code, 0) << silent.err;
  ASSERT_TRUE(eventually([&] { return jobs()["succeeded"] == 1; }, std::chrono::seconds(20)));
  EXPECT_TRUE(eventually([&] {
    const auto files = files_in(session.dir / "logs");
    return std::count_if(files.begin(), files.end(), [](const FolderFile& file) {
             return file.bytes == 0 && (file.path.filename().string().starts_with("worker-") ||
                                        file.path.filename().string().starts_with("job-"));
           }) == 0;
  }));
  const CommandResult logs = starling({"logs", silent.last_line()});
  EXPECT_EQ(logs.code, 0) << logs.err;
  EXPECT_EQ(logs.out, "");
  EXPECT_NE(logs.err.find("has written nothing"), std::string::npos) << logs.err;
}

}  // namespace
}  // namespace runtime
