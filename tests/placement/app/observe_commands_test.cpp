// The command lines of `starling` that show what a cluster does.
#include "tests/placement/app/command_line.h"

namespace placement {
namespace {

namespace control = runtime::control;

class ObserveCommandsTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  ObserveCommandsTest() {
    cluster_.on_observe<control::ListActors>([](const auto&) { return runtime::ActorPage(); });
  }
  Said say(Command (*add)(CLI::App& app), const Words& words) const {
    return said_to(add, words, cluster_);
  }

  FakeCluster cluster_;
};

TEST_F(ObserveCommandsTest, WhatIsAskedAboutHasToBeNamedAndThere) {
  expect_refused(say(add_why, {"why", "ghost"}), 1, {"is called 'ghost'"});
  expect_refused(say(add_stack, {"stack", "ghost"}), 1, {"no actor is called 'ghost'"});
  expect_refused(say(add_why, {"why"}), 2, {"what"});
  expect_refused(say(add_stack, {"stack"}), 2, {"actor"});
}

TEST_F(ObserveCommandsTest, TopHasAsManyRowsAsItIsTold) {
  cluster_.on_observe<control::ReadLoad>([](const auto&) {
    runtime::NodeLoad load;
    for (const char* name : {"Idle", "Waited"}) {
      runtime::ActorLoad actor;
      actor.actor = runtime::ActorId::random();
      actor.class_name = name;
      actor.waiting = load.actors.size();
      load.actors.push_back(actor);
    }
    return load;
  });
  const Said one = say(add_top, {"top", "--once", "--rows", "1"});
  EXPECT_EQ(one.code, 0) << one.err;
  expect_said(one.out, {"Waited"});
  EXPECT_EQ(one.out.find("Idle"), std::string::npos) << one.out;
  for (const Words& words : {Words{"--rows", "0"}, Words{"--every", "0.1"}})
    expect_refused(say(add_top, {"top", "--once", words[0], words[1]}), 2, {words[0]});
}

TEST_F(ObserveCommandsTest, ATimelineThatCannotBeKeptIsNotRecorded) {
  expect_refused(say(add_timeline, {"timeline", "--seconds", "601"}), 1, {"--seconds"});
  expect_refused(say(add_timeline, {"timeline", "-o", "/no/such/folder/trace.json"}), 1,
                 {"-o /no/such/folder/trace.json"});
}

TEST_F(ObserveCommandsTest, TheDoctorsBytesAreASize) {
  for (const char* bytes : {"-1", "lots"})
    expect_refused(say(add_doctor, {"doctor", "--cluster", "--bytes", bytes}), 2, {"--bytes"});
}

}  // namespace
}  // namespace placement
