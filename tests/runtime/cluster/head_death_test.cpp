// The head's process dies under load.
#include <algorithm>

#include "fixture.h"

#include "tests/support/pauses.h"

namespace runtime::test {
namespace {

class HeadDeathTiming : public NetworkTest {};

TEST_F(HeadDeathTiming, CallsGoOnAndCreationWorksAgainWithinThreeSeconds) {
  start({.machines = 4, .arguments = {"--num-cpus", "4"}});
  if (IsSkipped()) return;
  begin_load(1, {.per_second = 20});
  begin_load(2, {.per_second = 20});
  ASSERT_TRUE(eventually([&] { return count_ok(history(), Op::kEcho, 0, INT64_MAX) > 40; }, 40s));
  std::vector<std::int64_t> kills;
  for (int round = 0; round < 2; ++round) {
    const pid_t head = cluster_->head();
    ASSERT_GT(head, 0);
    kills.push_back(now_us());
    ::kill(head, SIGKILL);
    support::hold_for(3500ms);  // the load goes on; what is asked for has three seconds
  }
  end_loads();
  const History asked = history();
  for (std::int64_t kill : kills) {
    const std::int64_t created = first_ok(asked, Op::kCreate, kill);
    ASSERT_GT(created, 0) << "nothing was created after the head's death\n"
                          << asked.excerpt(kill, 40);
    EXPECT_LT(created - kill, 3'000'000) << asked.excerpt(kill, 40);
    RecordProperty("created_after_ms", static_cast<int>((created - kill) / 1000));
    std::printf("creation works again after %lld ms\n",
                static_cast<long long>((created - kill) / 1000));
  }
  // Calls between living actors did not notice: none failed, none waited.
  std::int64_t slowest = 0;
  for (const Event& event : asked.events) {
    if (event.op != Op::kEcho) continue;
    EXPECT_TRUE(event.ok()) << event.to_string();
    slowest = std::max(slowest, event.end - event.begin - event.stalled);
  }
  std::printf("slowest call between actors: %lld ms\n", static_cast<long long>(slowest / 1000));
  EXPECT_LT(slowest, 1'000'000);
  for (int client = 1; client <= 2; ++client)
    EXPECT_GT(count_ok(asked, Op::kEcho, kills[0], kills[1]), 200);
  EXPECT_EQ(cluster_->members(3), 4);
  expect_promises_kept(3);
}

class HeadAwayTest : public NetworkTest {
 protected:
  /// What a command says that cannot be answered, sooner than its deadline of half a minute.
  std::string refusal(int machine, std::vector<std::string> arguments) {
    const std::string name = arguments[0] + " " + (arguments.size() > 1 ? arguments[1] : "");
    const std::int64_t begin = now_us();
    const Finished finished = cluster_->starling(machine, std::move(arguments));
    const auto took = std::chrono::milliseconds((now_us() - begin) / 1000);
    EXPECT_EQ(finished.code, 1) << name << ": " << finished.output;
    EXPECT_LT(took, 25s) << name;
    return name + ": " + finished.output;
  }
  void expect_explained(const std::string& text, const std::string& cure) const {
    EXPECT_NE(text.find("the head at " + cluster_->address(0) + " has not answered since 20"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("keep working"), std::string::npos) << text;
    EXPECT_NE(text.find(cure), std::string::npos) << text;
  }
  void kill_head_node() {
    const pid_t head = cluster_->head();
    ASSERT_GT(head, 0);
    cluster_->kill_node(0);
    ::kill(head, SIGKILL);
  }
};

TEST_F(HeadAwayTest, CommandsOnOtherNodesSayWhatGoesOn) {
  start({.machines = 3, .arguments = {"--num-cpus", "2"}});
  if (IsSkipped()) return;
  kill_head_node();
  const std::vector<std::vector<std::string>> commands{{"status"},
                                                       {"list", "nodes"},
                                                       {"list", "actors"},
                                                       {"list", "workers"},
                                                       {"list", "objects", "--json"},
                                                       {"why", "abcd"},
                                                       {"job", "list"},
                                                       {"stack", "abcd"},
                                                       {"top", "--once"},
                                                       {"drain", cluster_->address(2)}};
  for (const auto& command : commands) {
    const std::string text = refusal(1, command);
    expect_explained(text, "starling start --head --journal");
    EXPECT_NE(text.find("This node waits another"), std::string::npos) << text;
  }
  EXPECT_NE(cluster_->starling(1, {"metrics"}).output.find("starling_head_up 0"), std::string::npos)
      << "what the node itself knows, it tells";
  expect_started(0);
  EXPECT_TRUE(eventually([&] { return cluster_->starling(1, {"status"}).code == 0; }, 20s));
}

TEST_F(HeadAwayTest, AHeadThatNoPacketReachesIsNamedToo) {
  start({.machines = 2, .arguments = {"--num-cpus", "2"}});
  if (IsSkipped()) return;
  network_->isolate(0);
  const std::string text = refusal(1, {"status"});
  expect_explained(text, "starling start --head --journal");
}

TEST_F(HeadAwayTest, AHeadThatIsBackInAMomentIsWaitedFor) {
  start({.machines = 2, .arguments = {"--num-cpus", "2"}});
  if (IsSkipped()) return;
  const pid_t head = cluster_->head();
  ASSERT_GT(head, 0);
  ::kill(head, SIGKILL);
  for (int machine = 0; machine < 2; ++machine) {
    const Finished status = cluster_->starling(machine, {"status"});
    EXPECT_EQ(status.code, 0) << status.output;
  }
}

}  // namespace
}  // namespace runtime::test
