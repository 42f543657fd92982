// Real processes that are killed, stopped and cut off while calls are under way. What each caller
// was told is held against what ran.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "cutting_forwarder.h"
#include "ledger.h"
#include "tests/runtime/actor/command.h"
#include "tests/support/eventually.h"
#include "tests/support/pauses.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {

using support::eventually;
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::int64_t resident_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return -1;
}

std::size_t open_files(pid_t pid) {
  std::error_code error;
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error))
    ++count;
  return count;
}

class ChaosTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rt_ = make_driver(root_, {"--num-cpus", "4"});
    const Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override { rt_.reset(); }

  std::string address() {
    const auto state = rt_->cluster().state();
    for (const NodeInfo& node : state.ok() ? state->nodes : std::vector<NodeInfo>()) {
      if (node.is_head) return node.address;
    }
    return "";
  }
  std::string entries() const { return (root_ / "entries").string(); }
  std::string acknowledged(int caller) const {
    return (root_ / ("acknowledged-" + std::to_string(caller))).string();
  }

  ActorHandle<Ledger> ledger(ActorOptions options = {}) {
    options.name = "ledger";
    options.name_space = "chaos";  // callers are separate drivers
    auto made = rt_->spawn<Ledger>(options, entries());
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Ledger>());
  }

  std::unique_ptr<Command> caller(int id, int count) {
    return std::make_unique<Command>(std::vector<std::string>{
        fs::read_symlink("/proc/self/exe").string(), "--caller", "ledger", std::to_string(id),
        std::to_string(count), acknowledged(id), "--address", address()});
  }

  /// One that asks for 8,000 replies of 50,000 bytes and does not read them until it is continued.
  /// They are 400 MB in all, and each is below the size that goes through shared memory.
  static constexpr std::uint64_t kDeafBytes = 50'000;
  std::unique_ptr<Command> deaf_caller(std::chrono::milliseconds timeout) {
    return std::make_unique<Command>(std::vector<std::string>{
        fs::read_symlink("/proc/self/exe").string(), "--deaf", "ledger", "8000",
        std::to_string(kDeafBytes), std::to_string(timeout.count()), "--address", address()});
  }

  std::int64_t recorded(int caller) const {
    const auto all = EntryFile::read(entries());
    return std::count_if(all.begin(), all.end(),
                         [&](const LedgerEntry& entry) { return entry.caller == caller; });
  }

  /// Every call ran at most once, each caller's in its order, and what was acknowledged ran.
  /// `whole`: none is missing either.
  void expect_honest(const std::vector<int>& callers, bool whole) const {
    std::map<int, std::vector<int>> ran;
    for (const LedgerEntry& entry : EntryFile::read(entries()))
      ran[entry.caller].push_back(entry.sequence);
    for (int caller : callers) {
      const std::vector<int>& sequences = ran[caller];
      for (std::size_t i = 1; i < sequences.size(); ++i) {
        ASSERT_LT(sequences[i - 1], sequences[i])
            << "caller " << caller << ": twice, or out of order";
        if (whole) {
          ASSERT_EQ(sequences[i - 1] + 1, sequences[i]) << "caller " << caller << ": left out";
        }
      }
      const std::set<int> known(sequences.begin(), sequences.end());
      for (const LedgerEntry& entry : EntryFile::read(acknowledged(caller))) {
        ASSERT_TRUE(known.contains(entry.sequence))
            << "caller " << caller << " heard of " << entry.sequence << ", which never ran";
      }
    }
  }

  support::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
  std::unique_ptr<Runtime> rt_;
};

TEST_F(ChaosTest, KilledCallersLeaveAPrefixAndTheOthersGoOn) {
  constexpr int kCalls = 20'000;
  auto actor = ledger();
  std::vector<std::unique_ptr<Command>> callers;
  for (int id = 0; id < 3; ++id) callers.push_back(caller(id, kCalls));
  ASSERT_TRUE(eventually([&] { return recorded(0) > 500; })) << callers[0]->output();
  callers[0]->signal(SIGKILL);
  for (int id : {1, 2}) EXPECT_EQ(callers[static_cast<std::size_t>(id)]->wait().exit_code, 0);
  EXPECT_EQ(recorded(1), kCalls);
  EXPECT_EQ(recorded(2), kCalls);
  expect_honest({0, 1, 2}, /*whole=*/true);
}

TEST_F(ChaosTest, AKilledActorEndsEveryCallOfItsCallers) {
  auto actor = ledger();
  std::vector<std::unique_ptr<Command>> callers;
  for (int id = 0; id < 3; ++id) callers.push_back(caller(id, 10'000'000));
  ASSERT_TRUE(
      eventually([&] { return recorded(0) > 500 && recorded(1) > 500 && recorded(2) > 500; }));
  ::kill(actor.pid(), SIGKILL);
  for (auto& command : callers) EXPECT_EQ(command->wait().exit_code, 3);
  expect_honest({0, 1, 2}, /*whole=*/true);
}

TEST_F(ChaosTest, AStoppedActorKeepsDeadlinesAndOrder) {
  auto actor = ledger();
  ASSERT_TRUE(rt_->get(actor.call(&Ledger::record, 0, 1)).ok());
  ::kill(actor.pid(), SIGSTOP);
  auto hurried = actor.call(CallOptions{.timeout = 200ms}, &Ledger::record, 0, 2);
  auto patient = actor.call(&Ledger::record, 0, 3);
  EXPECT_EQ(rt_->get(hurried).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(rt_->get(patient, 100ms).status().code(), ErrorCode::kDeadlineExceeded)
      << "get's own deadline";
  ::kill(actor.pid(), SIGCONT);
  EXPECT_EQ(rt_->get(patient, 20s).value_or(0), 3);
  expect_honest({0}, /*whole=*/false);
}

TEST_F(ChaosTest, CallsGoOnWhileTheNodeIsStopped) {
  auto actor = ledger();
  auto far = caller(1, 5'000);
  ASSERT_TRUE(eventually([&] { return recorded(1) > 100; })) << far->output();
  const auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  const pid_t node = state->nodes.at(0).pid;
  ::kill(node, SIGSTOP);
  bool done = true;
  for (int i = 1; i <= 200 && done; ++i)
    done = rt_->get(actor.call(&Ledger::record, 0, i), 5s).ok();
  ::kill(node, SIGCONT);
  EXPECT_TRUE(done);
  EXPECT_EQ(far->wait().exit_code, 0);
  expect_honest({0, 1}, /*whole=*/true);
}

class ChaosTiming : public ChaosTest {};

TEST_F(ChaosTiming, CallsThatMayBeRepeatedForEverPauseBetweenAttempts) {
  auto actor = ledger();
  ASSERT_TRUE(rt_->get(actor.call(&Ledger::record, 0, 1)).ok());
  const auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  ::kill(state->nodes.at(0).pid,
         SIGKILL);  // the head, and the only node: none is left to say what became of the actor
  ::kill(actor.pid(), SIGKILL);
  const std::clock_t before = std::clock();
  const auto result = rt_->get(
      actor.call(CallOptions{.timeout = 3s, .max_task_retries = -1}, &Ledger::record, 0, 2));
  const double cpu_seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  const ErrorCode code = result.status().code();
  EXPECT_TRUE(code == ErrorCode::kDeadlineExceeded || code == ErrorCode::kUnavailable ||
              code == ErrorCode::kActorDied)
      << result.status().to_string();
  EXPECT_LT(cpu_seconds, 1.0) << "of 3 s, in vain: " << result.status().to_string();
}

TEST_F(ChaosTest, ConnectionsCutMidFrameCostTimeOnly) {
  // The node listens at one loopback address and is known by another, where the forwarder listens.
  const auto port = static_cast<std::uint16_t>(20'000 + ::getpid() % 20'000);
  CuttingForwarder forwarder("127.0.0.3", "127.0.0.2", port, 20'000, 1);
  if (!forwarder.listens()) GTEST_SKIP() << "port " << port << " is taken";
  Command node({STARLING_BIN_DIR "/starling", "start", "--address", address(), "--bind",
                "127.0.0.2", "--advertise", "127.0.0.3", "--port", std::to_string(port),
                "--num-cpus", "2", "--block"});
  NodeId second;
  ASSERT_TRUE(eventually([&] {
    const auto state = rt_->cluster().state();
    for (const NodeInfo& info : state.ok() ? state->nodes : std::vector<NodeInfo>()) {
      if (!info.is_head) second = info.node;
    }
    return !second.is_none();
  })) << node.output();
  auto actor = ledger({.node = second});
  auto far = caller(1, 20'000);
  EXPECT_TRUE(eventually([&] { return forwarder.cuts() >= 10; }))
      << forwarder.cuts() << " cuts; " << far->output();
  // What is no call either: the values of a stream, and how far its reader is.
  const int cuts_before = forwarder.cuts();
  Stream<int> numbers = actor.call(&Ledger::count_to, 20'000);
  int last = 0;
  for (int number : numbers) {
    if (number != last + 1) break;
    last = number;
  }
  EXPECT_TRUE(numbers.status().ok()) << numbers.status().to_string();
  EXPECT_EQ(last, 20'000) << "each value once and in order";
  EXPECT_GT(forwarder.cuts(), cuts_before);
  forwarder.heal();
  const CommandResult result = far->wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  expect_honest({1}, /*whole=*/true);
  EXPECT_EQ(recorded(1), 20'000);
  EXPECT_EQ(EntryFile::read(acknowledged(1)).size(), 20'000u)
      << "no call failed: a cut costs time only";
  EXPECT_EQ(rt_->get(actor.call(&Ledger::measure, std::string(1 << 20, 'y')), 20s).value_or(0),
            1u << 20)
      << "healed";
}

TEST_F(ChaosTest, ACallerThatDoesNotReadDoesNotFillTheActorsMemory) {
  auto actor = ledger();
  ASSERT_TRUE(rt_->get(actor.call(&Ledger::text, kDeafBytes)).ok());
  const std::int64_t before = resident_kib(actor.pid());
  auto deaf = deaf_caller(10min);
  ASSERT_TRUE(eventually([&] { return deaf->output().find("asked") != std::string::npos; }))
      << deaf->output();
  std::int64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    most = std::max(most, resident_kib(actor.pid()));
    support::hold_for(20ms);  // two seconds in which the actor answers: its memory may not grow
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which keep what is freed
  EXPECT_LT(most - before, 100 << 10) << "KiB of replies are held for a caller that does not read";
#endif
  EXPECT_TRUE(rt_->get(actor.call(&Ledger::record, 0, 1), 10s).ok())
      << "the others are served meanwhile";
  deaf->signal(SIGCONT);
  EXPECT_EQ(deaf->wait().exit_code, 0) << "and it gets them all in the end: " << deaf->output();
}

TEST_F(ChaosTest, CallsThatWaitForTheirCallerToReadKeepTheirDeadlines) {
  auto actor = ledger();
  auto deaf = deaf_caller(2s);
  ASSERT_TRUE(eventually([&] { return deaf->output().find("asked") != std::string::npos; }))
      << deaf->output();
  support::hold_for(2500ms);  // it is stopped for longer than its calls have time
  deaf->signal(SIGCONT);
  EXPECT_EQ(deaf->wait().exit_code, 5) << deaf->output();
  EXPECT_TRUE(rt_->get(actor.call(&Ledger::record, 0, 1), 10s).ok());
}

TEST_F(ChaosTest, AnActorEndsThoughACallerDoesNotRead) {
  auto actor = ledger();
  auto deaf = deaf_caller(10min);
  ASSERT_TRUE(eventually([&] { return deaf->output().find("asked") != std::string::npos; }))
      << deaf->output();
  support::hold_for(100ms);  // in which its replies fill the connection
  EXPECT_TRUE(rt_->kill(actor).ok());
  deaf->signal(SIGCONT);
  EXPECT_EQ(deaf->wait().exit_code, 4)
      << "the calls that were not answered fail: " << deaf->output();
}

TEST_F(ChaosTest, CyclesLeaveNothingBehind) {
  const auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  const pid_t node = state->nodes.at(0).pid;
  auto actor = ledger();
  const std::string large(200'000, 'z');
  const auto cycle = [&](int objects, int actors) {
    for (int i = 0; i < objects; ++i) {
      ASSERT_TRUE(rt_->put(i).ok());
      if (i % 10 == 0) {
        const auto put = rt_->put(large);
        ASSERT_TRUE(put.ok()) << put.status().to_string();
        if (i % 100 == 0) {
          ASSERT_EQ(rt_->get(actor.call(&Ledger::measure, *put)).value_or(0), large.size());
        }
      }
    }
    for (int i = 0; i < actors; ++i) {
      auto made = rt_->spawn<Ledger>({}, entries());
      ASSERT_TRUE(made.ok()) << made.status().to_string();
      ASSERT_TRUE(rt_->get(made->call(&Ledger::record, 9, i)).ok());
      ASSERT_TRUE(rt_->kill(*made).ok());
    }
  };
  cycle(2'000, 5);  // first use costs
  struct Footprint {
    std::size_t driver_files, node_files, actor_files;
    std::int64_t driver_kib, node_kib, actor_kib;
  };
  const auto measure = [&] {
    return Footprint{open_files(::getpid()),   open_files(node),   open_files(actor.pid()),
                     resident_kib(::getpid()), resident_kib(node), resident_kib(actor.pid())};
  };
  const Footprint before = measure();
  cycle(20'000, 25);
  Footprint after{};
  EXPECT_TRUE(eventually([&] {
    after = measure();
    return after.driver_files <= before.driver_files && after.node_files <= before.node_files &&
           after.actor_files <= before.actor_files;
  })) << "open files: driver "
      << before.driver_files << " to " << after.driver_files << ", node " << before.node_files
      << " to " << after.node_files << ", actor " << before.actor_files << " to "
      << after.actor_files;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(after.driver_kib - before.driver_kib, 8 << 10);
  EXPECT_LT(after.node_kib - before.node_kib, 8 << 10);
  EXPECT_LT(after.actor_kib - before.actor_kib, 8 << 10);
#endif
}

}  // namespace
}  // namespace runtime::test
