// Nodes that leave: what runs there goes on elsewhere, and nothing that was answered is lost.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "drain_fixture.h"
#include "tests/support/blocking_thread.h"

namespace runtime::test {
namespace {

using Kind = NodeEvent::Kind;

TEST_F(DrainTest, CountersMoveUnderLoadAndLoseNoAcknowledgedIncrement) {
  TestNode leaving = add_node();
  std::vector<ActorHandle<Keeper>> counters;
  for (int i = 0; i < 3; ++i) counters.push_back(make<Keeper>(far(1)));
  const TestNode staying = add_node();
  std::atomic<bool> stop{false};
  std::vector<std::atomic<std::int64_t>> acknowledged(counters.size());
  std::vector<std::atomic<std::int64_t>> attempted(counters.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    callers.emplace_back([&, i] {
      while (!stop) {
        ++attempted[i];
        if (rt_->get(counters[i].call(&Keeper::add, 1), 20s).ok()) ++acknowledged[i];
      }
    });
  }
  const auto each_has = [&](std::int64_t more, const std::vector<std::int64_t>& than) {
    return eventually([&] {
      for (std::size_t i = 0; i < acknowledged.size(); ++i) {
        if (acknowledged[i] < than[i] + more) return false;
      }
      return true;
    });
  };
  EXPECT_TRUE(each_has(20, {0, 0, 0}));
  ASSERT_EQ(drain(leaving, "100s").exit_code, 0);
  EXPECT_TRUE(has_left(leaving)) << "it waits for its deadline: " << leaving.process->output();
  EXPECT_TRUE(each_has(20, {acknowledged[0], acknowledged[1], acknowledged[2]}));
  stop = true;
  for (std::thread& caller : callers) caller.join();
  for (std::size_t i = 0; i < counters.size(); ++i) {
    const std::int64_t total = get(counters[i].call(&Keeper::total));
    EXPECT_GE(total, acknowledged[i]);
    EXPECT_LE(total, attempted[i]);
    EXPECT_GT(acknowledged[i], 10);
    EXPECT_EQ(get(counters[i].call(&Keeper::node)), staying.id.hex());
    const auto drains = get(counters[i].call(&Keeper::drains));
    ASSERT_EQ(drains.size(), 1u) << "on_drain() runs once, before the state is saved";
    EXPECT_TRUE(drains[0].starts_with("preemption ")) << drains[0];
    EXPECT_LE(std::stoi(drains[0].substr(11)), 100);
    const ActorState state = state_of(counters[i]);
    EXPECT_EQ(state.restarts, 1u);
    EXPECT_EQ(state.moves, 1u);
    // The one restart that it may have is still there.
    ASSERT_TRUE(rt_->kill(counters[i], Restarts::kAllowed).ok());
    // A call may still go to the process that was killed, and is not retried.
    EXPECT_TRUE(eventually([&] { return rt_->get(counters[i].call(&Keeper::total), 20s).ok(); }))
        << state_of(counters[i]).death.text;
  }
  EXPECT_EQ(leaving.process->wait().exit_code, 0);
}

TEST_F(DrainTest, WhatFitsNowhereStaysWithItsReasonAndMovesOnceItFits) {
  TestNode leaving = add_node();
  auto keeper = make<Keeper>(far(-1));
  get(keeper.call(&Keeper::add, 5));
  ASSERT_EQ(drain(leaving, "60s").exit_code, 0);
  EXPECT_TRUE(eventually([&] {
    return state_of(keeper).pending_reason.find("far") != std::string::npos;
  })) << state_of(keeper).pending_reason;
  EXPECT_EQ(get(keeper.call(&Keeper::add, 1)), 6) << "it goes on where it is";
  const CommandResult status = run({kStarling, "status", "--address", address_});
  for (const char* part : {"draining (preemption)", "1 actor (Keeper", "far"})
    EXPECT_NE(status.output.find(part), std::string::npos) << status.output;
  const CommandResult list = run({kStarling, "list", "nodes", "--json", "--address", address_});
  for (const char* part : {"\"state\": \"draining\"", "\"reason\": \"preemption\"", "\"left_ms\""})
    EXPECT_NE(list.output.find(part), std::string::npos) << list.output;
  const TestNode other = add_node();
  EXPECT_TRUE(has_left(leaving)) << leaving.process->output();
  EXPECT_EQ(get(keeper.call(&Keeper::total)), 6);
  EXPECT_EQ(get(keeper.call(&Keeper::node)), other.id.hex());
}

TEST_F(DrainTest, WhatCannotComeBackGoesOnToTheDeadlineAndDiesOfTheDrain) {
  TestNode leaving = add_node();
  const TestNode staying = add_node(0);
  auto mortal = make<Mortal>(far());
  ASSERT_EQ(drain(leaving, "3s").exit_code, 0);
  EXPECT_TRUE(eventually([&] { return get(mortal.call(&Mortal::heard)) == "preemption"; }));
  EXPECT_EQ(get(mortal.call(&Mortal::add, 2)), 2);
  EXPECT_NE(state_of(mortal).pending_reason.find("max_restarts"), std::string::npos)
      << state_of(mortal).pending_reason;
  EXPECT_TRUE(has_left(leaving));
  const Status end = rt_->get(mortal.call(&Mortal::add, 1), 10s).status();
  EXPECT_EQ(end.code(), ErrorCode::kActorDied);
  EXPECT_NE(end.message().find("drained (preemption)"), std::string::npos) << end.message();
}

TEST_F(DrainTest, ARunningMethodLearnsOfTheDrainAndTheActorMovesAfterIt) {
  TestNode leaving = add_node();
  auto keeper = make<Keeper>(far(-1));
  auto worked = keeper.call(&Keeper::work_until_drained);
  const TestNode other = add_node();
  ASSERT_EQ(drain(leaving).exit_code, 0);
  EXPECT_EQ(get(worked), "preemption");
  EXPECT_TRUE(has_left(leaving));
  EXPECT_EQ(get(keeper.call(&Keeper::add, 1)), 1);
  EXPECT_EQ(get(keeper.call(&Keeper::node)), other.id.hex());
}

TEST_F(DrainTest, AGangMovesAsAWholeWithItsStates) {
  TestNode leaving = add_node(1), staying = add_node(1);
  GroupSpec group{
      GroupId::random(), "gang", GroupStrategy::kStrictSpread, {{{"far", 1.0}}, {{"far", 1.0}}}};
  ASSERT_TRUE(rt_->groups().create(group, 20s).get().ok());
  std::vector<ActorHandle<Keeper>> gang;
  for (std::uint32_t bundle = 0; bundle < 2; ++bundle) {
    ActorOptions options = far(1);
    options.bundle = BundleSlot{group.group, bundle};
    gang.push_back(make<Keeper>(options));
    EXPECT_EQ(get(gang.back().call(&Keeper::add, 7)), 7);
  }
  ASSERT_EQ(drain(leaving, "60s").exit_code, 0);
  EXPECT_TRUE(eventually([&] {
    for (const ActorHandle<Keeper>& keeper : gang) {
      if (state_of(keeper).pending_reason.find("placement group 'gang'") != std::string::npos)
        return true;
    }
    return false;
  }));
  EXPECT_EQ(get(gang[0].call(&Keeper::add, 1)), 8)
      << "it stays whole where it is until there is a place for all of it";
  EXPECT_EQ(get(gang[1].call(&Keeper::add, 1)), 8);
  const TestNode other = add_node(1);
  EXPECT_TRUE(has_left(leaving)) << leaving.process->output();
  std::set<std::string> where;
  for (const ActorHandle<Keeper>& keeper : gang) {
    EXPECT_EQ(get(keeper.call(&Keeper::total)), 8);
    where.insert(get(keeper.call(&Keeper::node)));
    EXPECT_EQ(state_of(keeper).moves, 1u);
  }
  EXPECT_EQ(where, (std::set<std::string>{staying.id.hex(), other.id.hex()}));
}

TEST_F(DrainTest, NothingNewIsPlacedThere) {
  TestNode leaving = add_node();
  auto holder = make<Mortal>(far());  // keeps the node to its deadline
  ASSERT_EQ(drain(leaving, "8s").exit_code, 0);
  ActorOptions hurried = far();
  hurried.create_timeout = 500ms;
  const auto refused = rt_->spawn<Mortal>(hurried);
  EXPECT_EQ(refused.status().code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("is being drained"), std::string::npos)
      << refused.status().message();
  GroupSpec group{GroupId::random(), "", GroupStrategy::kPack, {{{"far", 1.0}}}};
  EXPECT_NE(rt_->groups().create(group, 500ms).get().status().message().find("is being drained"),
            std::string::npos);
  // One that waits for a place when the drain begins, and one that comes later, go to the next
  // node.
  ActorOptions patient = far();
  support::BlockingThread spawning;
  auto placed = std::async(std::launch::async, [&] {
    spawning.begin();
    return rt_->spawn<Keeper>(patient);
  });
  ASSERT_TRUE(spawning.is_blocked());
  const TestNode other = add_node();
  auto keeper = placed.get();
  ASSERT_TRUE(keeper.ok()) << keeper.status().to_string();
  EXPECT_EQ(get(keeper->call(&Keeper::node)), other.id.hex());
}

TEST_F(DrainTest, TheHeadsNodeAndUnknownOnesAreRefused) {
  const TestNode other = add_node();
  const CommandResult head = run({kStarling, "drain", address_, "--address", address_});
  EXPECT_EQ(head.exit_code, 1);
  EXPECT_NE(head.output.find("hosts the head"), std::string::npos) << head.output;
  const CommandResult unknown =
      run({kStarling, "drain", other.address.substr(0, other.address.size() - 1), "--address",
           address_});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.output.find(other.address), std::string::npos) << unknown.output;
  for (const char* deadline : {"0", "-3s", "soon", "30h", "1e99h"}) {
    const CommandResult bad =
        run({kStarling, "drain", other.id.hex(), "--address", address_, "--deadline", deadline});
    EXPECT_EQ(bad.exit_code, 1) << deadline;
    EXPECT_NE(bad.output.find("--deadline"), std::string::npos) << bad.output;
  }
  EXPECT_FALSE(node(other.id)->drain);
}

TEST_F(DrainTest, WhatItWaitsForIsSaidAndOneThatHasLeftIsNotOfferedAnother) {
  TestNode leaving = add_node();
  const CommandResult drained = drain(leaving);
  EXPECT_EQ(drained.exit_code, 0);
  const std::set<std::string> may_be{"now it waits for its objects to be taken over",
                                     "now it waits for the end of its process",
                                     "had nothing to keep it, and has left"};
  const bool is_one = std::any_of(may_be.begin(), may_be.end(), [&](const std::string& text) {
    return drained.output.find(text) != std::string::npos;
  });
  EXPECT_TRUE(is_one) << drained.output;
  ASSERT_TRUE(has_left(leaving));
  const std::string address = leaving.address;
  for (const std::string& name : {address, leaving.id.hex(), leaving.id.short_hex()}) {
    const CommandResult again = run({kStarling, "drain", name, "--address", address_});
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_NE(again.output.find("is not in the cluster any more: node " + leaving.id.short_hex() +
                                " (" + address + ") was drained (preemption) and has left"),
              std::string::npos)
        << again.output;
  }
}

TEST_F(DrainTest, AnEarlierDeadlineCountsALaterOneDoesNot) {
  TestNode leaving = add_node();
  auto holder = make<Mortal>(far());
  ASSERT_EQ(drain(leaving, "100s").exit_code, 0);
  ASSERT_EQ(drain(leaving, "500s").exit_code, 0);
  EXPECT_LE(node(leaving.id)->drain->left, 100s);
  ASSERT_EQ(drain(leaving, "2s").exit_code, 0);
  EXPECT_TRUE(has_left(leaving));
}

TEST_F(DrainTest, AnEarlierDeadlineReachesActorsOfSharedProcessesThatAreOnTheirWay) {
  TestNode leaving = add_node();
  ActorOptions shared = far(-1);
  shared.isolation = Isolation::kShared;
  auto keeper = make<Keeper>(shared);
  get(keeper.call(&Keeper::add, 4));
  const TestNode other = add_node();
  // It cannot be interrupted, and would have until the drain's end.
  const std::string begun = folder_.file("begun");
  (void)keeper.call(&Keeper::note_and_work, begun, 100'000);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(begun); }));
  ASSERT_EQ(drain(leaving, "100s").exit_code, 0);
  EXPECT_NE(node(leaving.id)->drain->waits_for.find("is moving"), std::string::npos)
      << node(leaving.id)->drain->waits_for;
  ASSERT_EQ(drain(leaving, "8s").exit_code, 0);
  EXPECT_TRUE(eventually([&] { return state_of(keeper).moves == 1; }));
  // Not with the node, at its end.
  EXPECT_NE(state_of(keeper).death.text.find("had not served its calls in time"), std::string::npos)
      << state_of(keeper).death.text;
  // A call may still go to the process that was killed, and is not retried.
  EXPECT_TRUE(eventually(
      [&] { return rt_->get(keeper.call(&Keeper::node), 20s).value_or("") == other.id.hex(); }));
  EXPECT_TRUE(has_left(leaving));
}

TEST_F(DrainTest, SigtermDrainsASecondOneEndsAtOnce) {
  TestNode first = add_node();
  auto keeper = make<Keeper>(far(1));
  get(keeper.call(&Keeper::add, 3));
  TestNode second = add_node(4, {"--drain-deadline", "500s"});
  first.process->signal(SIGTERM);
  EXPECT_EQ(first.process->wait().exit_code, 0);
  EXPECT_EQ(get(keeper.call(&Keeper::total)), 3);
  EXPECT_EQ(get(keeper.call(&Keeper::drains)).size(), 1u);
  // Now the counter fits nowhere: the node waits with it, until it is told again.
  second.process->signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return node(second.id) && node(second.id)->drain; }));
  EXPECT_EQ(node(second.id)->drain->reason, "SIGTERM");
  second.process->signal(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  second.process->wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s) << "it has waited for its deadline";
}

TEST_F(DrainTest, DriversOnTheNodeAreToldBeforeItGoes) {
  TestNode leaving = add_node();
  Command driver({"/proc/self/exe", "--driver", "--address", leaving.address});
  ASSERT_TRUE(eventually([&] { return driver.output().find("ready") != std::string::npos; }))
      << driver.output();
  ASSERT_EQ(drain(leaving, "4s").exit_code, 0);
  EXPECT_NE(node(leaving.id)->drain->waits_for.find("1 job"), std::string::npos)
      << node(leaving.id)->drain->waits_for;
  EXPECT_NE(run({"/proc/self/exe", "--driver", "--address", leaving.address})
                .output.find("takes no drivers"),
            std::string::npos);
  EXPECT_TRUE(eventually([&] {
    return driver.output().find("told by SIGTERM") != std::string::npos;
  })) << driver.output();
  EXPECT_TRUE(has_left(leaving));
}

TEST_F(DrainTest, SurvivesTheHeadsDeath) {
  TestNode leaving = add_node();
  auto keeper = make<Keeper>(far(1));
  auto busy = keeper.call(&Keeper::work, 2500);
  get(make<Keeper>(far(1)).call(&Keeper::add, 1));
  for (int i = 0; i < 5; ++i) (void)keeper.call(&Keeper::add, 1);
  const TestNode other = add_node();
  ASSERT_EQ(drain(leaving, "200s").exit_code, 0);
  const pid_t before = head_process();
  ASSERT_GT(before, 0);
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return head_process() > 0 && head_process() != before; }));
  EXPECT_TRUE(has_left(leaving, 60s)) << leaving.process->output();
  EXPECT_EQ(get(keeper.call(&Keeper::total)), 5);
  EXPECT_EQ(state_of(keeper).moves, 1u);
  EXPECT_EQ(state_of(keeper).restarts, 1u);
  EXPECT_EQ(leaving.process->wait().exit_code, 0);
}

TEST_F(DrainTest, TasksOnTheNodeFinishAndLaterOnesRunElsewhere) {
  TestNode leaving = add_node(2);
  const std::string runs = folder_.file("runs");
  TaskOptions options{.cpus = 0, .max_retries = 0};
  options.resources["far"] = 1;
  auto slow = rt_->task(options, &slow_task, runs, 1500);
  ASSERT_TRUE(eventually([&] { return std::ifstream(runs).good(); }));
  const TestNode other = add_node(2);
  ASSERT_EQ(drain(leaving).exit_code, 0);
  std::vector<ObjectRef<int>> later;
  for (int i = 0; i < 20; ++i) later.push_back(rt_->task(options, &slow_task, runs, 10));
  for (const auto& ref : later)
    EXPECT_GT(get(ref), 0) << "none of them is refused or lost, though it may not be retried";
  EXPECT_GT(get(slow), 0);
  EXPECT_TRUE(has_left(leaving));
}

/// What a watch has told.
class Told {
 public:
  void add(const NodeEvent& event) {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  std::vector<NodeEvent> of(const NodeId& node) const {
    std::lock_guard lock(mutex_);
    std::vector<NodeEvent> found;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
                 [&](const NodeEvent& event) { return event.node.node == node; });
    return found;
  }
  std::vector<Kind> kinds(const NodeId& node) const {
    std::vector<Kind> kinds;
    for (const NodeEvent& event : of(node)) kinds.push_back(event.kind);
    return kinds;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<NodeEvent> events_;
};

TEST_F(DrainTest, WatchersHearOfJoiningDrainingLeavingAndLossInOrder) {
  Told told;
  Watch watch = rt_->cluster().watch_nodes([&](const NodeEvent& event) { told.add(event); });
  TestNode leaving = add_node(4, {"--label", "kind=spot"});
  auto holder = make<Mortal>(far());
  ASSERT_EQ(drain(leaving, "3s").exit_code, 0);
  EXPECT_TRUE(has_left(leaving));
  ASSERT_TRUE(eventually([&] {
    return told.kinds(leaving.id) == std::vector{Kind::kJoined, Kind::kDraining, Kind::kLeft};
  }));
  const auto events = told.of(leaving.id);
  EXPECT_EQ(events[0].node.labels.at("kind"), "spot");
  EXPECT_EQ(events[0].node.resources.at("far"), 4);
  EXPECT_EQ(events[1].why, "preemption");
  EXPECT_GT(events[1].deadline, events[0].deadline);
  EXPECT_NE(events[2].why.find("preemption"), std::string::npos) << events[2].why;
  TestNode lost = add_node();
  lost.process->signal(SIGKILL);
  ASSERT_TRUE(eventually([&] {
    return told.kinds(lost.id) == std::vector{Kind::kJoined, Kind::kLost};
  }));
  EXPECT_FALSE(told.of(lost.id)[1].node.alive);
}

TEST_F(DrainTest, WatchersMissNothingOverARestartOfTheHead) {
  Told told;
  Watch watch = rt_->cluster().watch_nodes([&](const NodeEvent& event) { told.add(event); });
  TestNode first = add_node();
  TestNode second = add_node();
  ASSERT_TRUE(eventually(
      [&] { return told.kinds(first.id).size() == 1 && told.kinds(second.id).size() == 1; }));
  const pid_t before = head_process();
  // What comes and goes while the head is away, and right after.
  first.process->signal(SIGKILL);
  ::kill(before, SIGKILL);
  TestNode third = add_node();
  ASSERT_EQ(drain(second, "5s").exit_code, 0);
  EXPECT_TRUE(has_left(second));
  third.process->signal(SIGKILL);
  EXPECT_TRUE(eventually([&] {
    return told.kinds(third.id) == std::vector{Kind::kJoined, Kind::kLost};
  }));
  EXPECT_TRUE(eventually([&] {
    return told.kinds(second.id) == std::vector{Kind::kJoined, Kind::kDraining, Kind::kLeft};
  }));
  EXPECT_TRUE(eventually(
      [&] {
        return told.kinds(first.id) == std::vector{Kind::kJoined, Kind::kLost};
      },
      20s))
      << "its lease ends with the restarted head";
}

}  // namespace
}  // namespace runtime::test
