#include "placement/app/cli_stack.h"

#include <nlohmann/json.hpp>

#include "tests/placement/app/fake_cluster.h"

namespace placement {
namespace {

namespace control = runtime::control;

/// The head filters the actors of the cluster's state, and the node has one report.
class StackCommand : public ::testing::Test {
 protected:
  StackCommand() {
    cluster_.on_observe<control::ListActors>([this](const control::ListActors& request) {
      const auto& [key, value] = request.filters.front();
      runtime::ActorPage page;
      for (const runtime::ActorState& actor : cluster_.state.actors) {
        if (key == "name" ? actor.name == value : actor.actor.hex().starts_with(value))
          page.actors.push_back(actor);
      }
      return page;
    });
    cluster_.on_observe<control::ReadStack>([this](const control::ReadStack& request) {
      asked_ = request.actor;
      return report_;
    });
  }
  runtime::ActorState& add_actor(const char* name,
                                 runtime::ActorPhase phase = runtime::ActorPhase::kAlive) {
    runtime::ActorState& actor = cluster_.add_actor("Counter", name);
    actor.phase = phase;
    actor.node = cluster_.node().id;
    return actor;
  }
  Said stack(const std::string& what, bool json = false) {
    return said_by([&] { return stack_command(cluster_.address(), what, json); });
  }
  void expect_refused(const std::string& what, const std::vector<std::string>& parts) {
    const Said said = stack(what);
    EXPECT_EQ(said.code, 1) << what;
    expect_said(said.err, parts);
    EXPECT_EQ(asked_, runtime::ActorId());
  }

  FakeCluster cluster_;
  runtime::StackReport report_;
  runtime::ActorId asked_;
};

TEST_F(StackCommand, ShowsWhatEachThreadOfItsProcessRuns) {
  const runtime::ActorId actor = add_actor("busy").actor;
  const runtime::ActorId other = runtime::ActorId::random();
  report_.pid = 12;
  report_.process = "sleeping";
  report_.note = "it was not asked twice";
  report_.threads.resize(2);
  runtime::ThreadStack& first = report_.threads[0];
  first.tid = 13;
  first.state = "sleeping";
  first.waits_in = "futex_wait";
  first.actor = other;
  first.running = "Counter.add";
  first.running_ns = 1'500'000'000;
  first.frames = {"inner", "outer"};
  const Said idle = stack("busy");
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_EQ(asked_, actor);
  expect_said(idle.out, {"Counter " + actor.short_hex() + " 'busy'  pid 12 on node " +
                             cluster_.node().id.short_hex() + ", sleeping\n",
                         "note: it was not asked twice", "it runs no method now",
                         "sleeping in futex_wait  runs Counter.add of " + other.short_hex() +
                             " for 1.500 s\n  #0 inner\n  #1 outer\n",
                         "  (no stack)\n"});
  first.actor = actor;
  const Said busy = stack(actor.hex().substr(0, 10));
  expect_said(busy.out, {"runs Counter.add for 1.500 s"});
  EXPECT_EQ(busy.out.find("runs no method"), std::string::npos) << busy.out;
  const auto json = nlohmann::json::parse(stack("busy", true).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["threads"][0]["running_ms"], 1500);
  EXPECT_EQ(json["threads"][0]["frames"], (std::vector<std::string>{"inner", "outer"}));
  EXPECT_EQ(json["threads"][1]["actor"], "") << "none is no id of zeros";
}

TEST_F(StackCommand, ANameComesBeforeDigitsAndTheLivingBeforeTheDead) {
  add_actor("echo", runtime::ActorPhase::kDead);
  const runtime::ActorId living = add_actor("echo").actor;
  EXPECT_EQ(stack("echo").code, 0);
  EXPECT_EQ(asked_, living);
  const std::string digits = living.hex().substr(0, 6);
  const runtime::ActorId named = add_actor(digits.c_str()).actor;
  EXPECT_EQ(stack(digits).code, 0);
  EXPECT_EQ(asked_, named);
}

TEST_F(StackCommand, OfManyThatMayBeMeantAFewAreNamed) {
  for (int i = 0; i < 5; ++i) add_actor("echo");
  const auto actors = cluster_.state.actors;
  expect_refused("echo", {"'echo' may be Counter " + actors[0].actor.short_hex(),
                          actors[4].actor.short_hex() + " 'echo'; give more digits"});
  const std::string sixth = add_actor("echo").actor.short_hex();
  expect_refused("echo", {actors[4].actor.short_hex() + " 'echo' and others; give more digits"});
  EXPECT_EQ(stack("echo").err.find(sixth), std::string::npos);
}

TEST_F(StackCommand, AnActorWithoutAProcessSaysWhy) {
  add_actor("dead", runtime::ActorPhase::kDead).death = runtime::cause_of("killed by SIGKILL");
  expect_refused("dead", {"'dead' is dead: killed by SIGKILL"});
  runtime::ActorState& waiting = add_actor("waiting", runtime::ActorPhase::kPending);
  waiting.node = {};
  waiting.pending_reason = "no node has a GPU";
  expect_refused("waiting", {"is pending and has no process: no node has a GPU"});
  const runtime::NodeId lost = cluster_.add_node().node;
  add_actor("lost").node = lost;
  expect_refused("lost", {"node " + lost.short_hex(), "'lost' runs, cannot be reached: "});
  add_actor("departed").node = runtime::NodeId::random();
  expect_refused("departed", {"'departed' runs, cannot be reached\n"});
}

TEST_F(StackCommand, WhatIsNoActorIsRefusedWithTheNearestOfTheLiving) {
  expect_refused("", {"name an actor"});
  expect_refused("x", {"called 'x'", "see starling list actors"});
  add_actor("learner2", runtime::ActorPhase::kDead);
  add_actor("learner1");
  expect_refused("learner", {"no actor is called 'learner'", "the nearest: learner1"});
  EXPECT_EQ(stack("learner").err.find("learner2"), std::string::npos);
}

}  // namespace
}  // namespace placement
