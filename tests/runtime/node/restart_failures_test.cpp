// Restarts that cannot happen for a while: no room for another process, the program's file is gone.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/process/file_util.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/runtime/node/program.h"
#include "tests/support/process_limit.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

class RestartFailures : public ClusterTest {
 protected:
  /// The node next to a head, which the limit is for.
  int start_limited() {
    address_ = start_head();
    const int node = session_of(address_).pid;
    limit_.add(node);
    return node;
  }
  std::string node_log() {
    return read_file(session_of(address_).dir / "logs" / "node.log", 4 << 20).value_or("");
  }
  bool has_logged(const std::string& text) {
    return eventually([&] { return node_log().find(text) != std::string::npos; });
  }
  /// Waits for three more tries to start the head. Each of them puts the token into a new file in
  /// memory, before it starts a process.
  static bool head_is_tried_again(int node) {
    std::set<ino_t> tokens;
    return eventually([&] {
      for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(node) + "/fd")) {
        std::error_code closed;
        struct stat file {};
        if (fs::read_symlink(entry, closed).string().starts_with("/memfd:token") &&
            ::stat(entry.path().c_str(), &file) == 0)
          tokens.insert(file.st_ino);
      }
      return tokens.size() >= 4;
    });
  }
  /// Waits until its node says that it has tried at least three times to start the actor's process.
  bool actor_is_tried_again(ActorId actor) {
    return eventually([&] {
      const std::string why = starling({"why", actor.hex(), "--address", address_}).out;
      const std::size_t tried = why.find("(tried ");
      int times = 0;
      return tried != std::string::npos &&
             std::sscanf(why.c_str() + tried, "(tried %d times", &times) == 1 && times >= 3;
    });
  }

  support::ProcessLimit limit_;
  std::string address_;
};

TEST_F(RestartFailures, AHeadThatCannotBeStartedIsTriedAgain) {
  if (!limit_.is_there()) GTEST_SKIP() << "needs a pids cgroup, or another user than root";
  const int node = start_limited();
  limit_.close(node);
  ::kill(child_of(node, "head"), SIGKILL);
  EXPECT_TRUE(has_logged("it is tried again")) << node_log();
  EXPECT_TRUE(head_is_tried_again(node)) << node_log();
  EXPECT_TRUE(process_runs(node)) << node_log();
  const CommandResult away = starling({"status", "--address", address_});
  EXPECT_NE(away.code, 0);
  EXPECT_NE(away.err.find("pids.max"), std::string::npos) << away.err;
  limit_.open(node);
  EXPECT_TRUE(eventually([&] { return child_of(node, "head") > 0; })) << node_log();
  EXPECT_TRUE(eventually([&] { return starling({"status", "--address", address_}).code == 0; }));
}

TEST_F(RestartFailures, AHeadWhoseProgramIsGoneIsStartedAsItWas) {
  const support::TemporaryFolder tools;
  const fs::path copy = tools.path() / "starling";
  fs::copy_file(program(), copy);
  CommandResult started = run_command({copy.string(), "start", "--head", "--port", "0"});
  ASSERT_EQ(started.code, 0) << started.err;
  address_ = started.last_line();
  const int node = session_of(address_).pid;
  // Removed, and replaced by what is no program at all.
  for (const bool is_replaced : {false, true}) {
    fs::remove(copy);
    if (is_replaced) std::ofstream(copy) << "something else\n";
    const int head = child_of(node, "head");
    ASSERT_GT(head, 0);
    ::kill(head, SIGKILL);
    EXPECT_TRUE(eventually([&] {
      const int now = child_of(node, "head");
      return now > 0 && now != head;
    })) << node_log();
    EXPECT_TRUE(eventually([&] {
      return starling({"status", "--address", address_}).code == 0;
    })) << node_log();
  }
}

TEST_F(RestartFailures, AHeadWhoseJournalIsGoneWaitsForIt) {
  const support::TemporaryFolder disk;
  const fs::path journal = disk.path() / "journal";
  address_ = start_head({"--journal", journal.string()});
  const int node = session_of(address_).pid;
  auto driver = TestDriver::connect(address_);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  fs::rename(journal, disk.path() / "unmounted");
  ::kill(child_of(node, "head"), SIGKILL);
  EXPECT_TRUE(eventually([&] {
    const CommandResult away = starling({"status", "--address", address_});
    return away.code != 0 && away.err.find("what was recorded there is gone") != std::string::npos;
  })) << node_log();
  EXPECT_FALSE(fs::exists(journal));
  fs::rename(disk.path() / "unmounted", journal);
  EXPECT_TRUE(eventually([&] {
    const CommandResult back = starling({"list", "jobs", "--address", address_});
    return back.code == 0 && back.out.find("running") != std::string::npos;
  })) << node_log();
  EXPECT_EQ(session_of(address_).pid, node);
}

TEST_F(RestartFailures, AnActorThatCannotBeStartedKeepsItsRestarts) {
  if (!limit_.is_there()) GTEST_SKIP() << "needs a pids cgroup, or another user than root";
  const int node = start_limited();
  auto driver = TestDriver::connect(address_);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  spec.max_restarts = 1;
  auto actor = (*driver)->create(spec);
  ASSERT_TRUE(actor.ok()) << actor.status().message();
  limit_.close(node);
  ::kill(actor->pid, SIGKILL);
  EXPECT_TRUE(has_logged("it is tried again")) << node_log();
  EXPECT_TRUE(actor_is_tried_again(spec.actor)) << node_log();
  EXPECT_NE((*driver)->state(spec.actor)->phase, ActorPhase::kDead);
  limit_.open(node);
  EXPECT_TRUE(eventually([&] {
    auto state = (*driver)->state(spec.actor);
    return state.ok() && state->phase == ActorPhase::kAlive &&
           state->incarnation > actor->incarnation;
  }));
  EXPECT_EQ((*driver)->state(spec.actor)->restarts, 1u);
}

TEST_F(RestartFailures, AStartThatStaysImpossibleSaysWhy) {
  if (!limit_.is_there()) GTEST_SKIP() << "needs a pids cgroup, or another user than root";
  const int node = start_limited();
  auto driver = TestDriver::connect(address_);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  limit_.close(node);
  ActorSpec spec;
  spec.actor = ActorId::random();
  spec.class_name = "Echo";
  const Status status = (*driver)->create(spec, milliseconds(1500)).status();
  limit_.open(node);
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted) << status.message();
  EXPECT_NE(status.message().find("pids.max"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("times"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace runtime
