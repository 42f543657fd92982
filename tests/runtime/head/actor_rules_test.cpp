#include "runtime/head/actor_rules.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

class ActorRulesTest : public PartTest {
 protected:
  ActorRulesTest() : job_(add_job(add_node(8))) {}

  bool restarts(const ActorSpec& spec) { return may_restart(tables_, record(spec)); }
  bool moves(const ActorSpec& spec) { return may_move(tables_, record(spec)); }
  /// Its process has ended, and the next one runs.
  void restart(const ActorSpec& spec) {
    context_.commit(command::ActorRestarts{spec.actor, {}});
    scheduler_.release_actor(spec.actor);
    make_alive(spec);
  }

  const JobId job_;
};

TEST_F(ActorRulesTest, AnActorHasAsManyRestartsAsItsOptionsSay) {
  const ActorSpec none = add_living(job_), two = add_living(job_, 1, 2),
                  any = add_living(job_, 1, -1);
  EXPECT_FALSE(restarts(none));
  EXPECT_TRUE(restarts(two));
  restart(two);
  EXPECT_TRUE(restarts(two));
  restart(two);
  EXPECT_FALSE(restarts(two));
  for (int i = 0; i < 3; ++i) restart(any);
  EXPECT_TRUE(restarts(any));
}

TEST_F(ActorRulesTest, MovesUseUpNoRestart) {
  const ActorSpec one = add_living(job_, 1, 1), none = add_living(job_);
  EXPECT_TRUE(moves(one));
  EXPECT_FALSE(moves(none)) << "its state would be lost";
  for (int i = 0; i < 2; ++i) {
    context_.commit(command::ActorMoves{one.actor});
    EXPECT_TRUE(restarts(one));
    restart(one);
  }
  EXPECT_TRUE(restarts(one)) << "that was for drains";
  restart(one);
  EXPECT_FALSE(restarts(one));
  EXPECT_TRUE(moves(one)) << "yet it may move";
}

TEST_F(ActorRulesTest, OneThatIsToEndOrWhoseJobHasEndedIsNotStartedAgain) {
  ActorSpec detached;
  detached.actor = ActorId::random();
  detached.class_name = "Counter";
  detached.max_restarts = -1;
  detached.outlives_job = true;
  add_actor(job_, detached);
  make_alive(detached);
  const ActorSpec one = add_living(job_, 1, -1), other = add_living(job_, 1, -1);
  context_.commit(command::ActorEnds{one.actor});
  EXPECT_FALSE(restarts(one) || moves(one));
  context_.commit(command::EndJob{job_, JobOutcome::kFailed});
  EXPECT_FALSE(restarts(other) || moves(other));
  EXPECT_TRUE(restarts(detached) && moves(detached));
}

TEST_F(ActorRulesTest, AFirstStartThatFailsIsItsCreatorsMatter) {
  const ActorSpec spec = add_actor(job_, 1, -1);
  auto place = scheduler_.place_actor(spec);
  ASSERT_TRUE(place.ok());
  context_.commit(command::ActorPlaced{spec.actor, *place, tables_.actors().next_incarnation()});
  EXPECT_FALSE(restarts(spec));
  context_.commit(command::ActorRestarts{spec.actor, {}});
  context_.commit(command::ActorPlaced{spec.actor, *place, tables_.actors().next_incarnation()});
  EXPECT_TRUE(restarts(spec)) << "it has run before";
}

TEST_F(ActorRulesTest, WhatDecidesAPlaceMakesAnotherShape) {
  ActorSpec spec;
  spec.class_name = "Counter";
  spec.resources = {{"CPU", 1}};
  ActorSpec same = spec;
  same.actor = ActorId::random();
  same.name = "another";
  same.constructor_args = "others";
  EXPECT_EQ(shape_of(spec), shape_of(same));
  const GroupId group = GroupId::random();
  std::vector<ActorSpec> others(7, spec);
  others[0].class_name = "Log";
  others[1].resources["CPU"] = 2;
  others[2].labels["zone"] = "a";
  others[3].node = NodeId::random();
  others[4].node_is_preferred = true;
  others[5].bundle = BundleSlot{group, 0};
  others[6].bundle = BundleSlot{group, 1};
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(shape_of(others[i]), shape_of(spec)) << i;
    if (i == 0) continue;
    EXPECT_NE(shape_of(others[i]), shape_of(others[i - 1])) << i;
  }
}

}  // namespace
}  // namespace runtime
