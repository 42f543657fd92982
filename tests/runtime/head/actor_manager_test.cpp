// The lives of actors, without the rest of the head.
#include "runtime/head/actor_manager.h"

#include "parts_fixture.h"
#include "queue_hooks.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class ActorManagerTest : public PartTest {
 protected:
  ActorManagerTest() : node_(add_node(4)), job_(add_job(node_)) {}

  ActorSpec begin(double cpus, std::int32_t max_restarts = 0) {
    const ActorSpec spec = add_actor(job_, cpus, max_restarts);
    actors_.begin(spec.actor, time_ + 10s);
    return spec;
  }
  void answer_start(const ActorSpec& spec) {
    auto start = links_.take<control::StartActor>();
    ASSERT_TRUE(start);
    start->answer(ControlAnswer{address(spec, start->node, 0)});
  }
  void exit(const ActorSpec& spec) {
    ask(actors_,
        control::ActorExited{spec.actor, record(spec).incarnation, {"it crashed", 100, -1, 9, ""}},
        node_);
  }
  std::size_t died_events() const {
    std::size_t dead = 0;
    for (const auto& [node, event] : links_.events) {
      if (const auto* died = std::get_if<control::ActorsDied>(&event)) dead += died->actors.size();
    }
    return dead;
  }

  const NodeId node_;
  const JobId job_;
  std::vector<ActorId> alive_;
  std::vector<JobId> outlived_;
  ActorWaiters waiters_{context_};
  PlacementQueue queue_{context_, hooks_of(actors_)};
  ActorManager actors_{context_,
                       queue_,
                       waiters_,
                       {[this](const ActorRecord& record) { alive_.push_back(record.spec.actor); },
                        [this](JobId job) { outlived_.push_back(job); }}};
};

TEST_F(ActorManagerTest, StartsWhereThereIsRoom) {
  const ActorSpec spec = begin(4);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting);
  answer_start(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kAlive);
  EXPECT_EQ(alive_, std::vector{spec.actor});
}

TEST_F(ActorManagerTest, WaitsForRoomAndTakesWhatIsReleased) {
  const ActorSpec first = begin(4);
  answer_start(first);
  const ActorSpec second = begin(4);
  EXPECT_EQ(record(second).phase, ActorPhase::kPending);
  exit(first);
  EXPECT_EQ(record(first).phase, ActorPhase::kDead);
  EXPECT_EQ(record(second).phase, ActorPhase::kStarting);
  EXPECT_EQ(died_events(), 1u);
}

TEST_F(ActorManagerTest, DiesAtTheDeadlineWithTheReasonForWaiting) {
  const ActorSpec spec = begin(8);
  queue_.tick(time_ + 10s);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
  EXPECT_NE(record(spec).death.text.find("not placed before its deadline: no node has CPU 8"),
            std::string::npos)
      << record(spec).death.text;
  EXPECT_EQ(died_events(), 0u) << "only its creator can hold a handle";
}

TEST_F(ActorManagerTest, RestartsAtOnceThenLater) {
  const ActorSpec spec = begin(1, 2);
  answer_start(spec);
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kStarting) << "nothing is held back after the first";
  answer_start(spec);
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kPending);
  EXPECT_EQ(queue_.next_tick(), time_ + options_.restart_delay_first);
  time_ = queue_.next_tick();
  queue_.tick(time_);
  answer_start(spec);
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);
}

TEST_F(ActorManagerTest, WhatItOwnsEndsWithIt) {
  const ActorSpec owner = begin(1);
  answer_start(owner);
  ActorSpec owned = owner;
  owned.actor = ActorId::random();
  owned.owner = owner.actor;
  owned.owner_incarnation = record(owner).incarnation;
  add_actor(job_, owned);
  actors_.begin(owned.actor, time_ + 10s);
  answer_start(owned);
  exit(owner);
  EXPECT_TRUE(record(owned).ending);
  const auto stop = links_.take<control::StopActor>();
  ASSERT_TRUE(stop);
  EXPECT_EQ(std::get<control::StopActor>(stop->request.body).actor, owned.actor);
}

TEST_F(ActorManagerTest, TheDeathsOfALostNodeAreOneEventForEach) {
  const ActorSpec first = begin(1), second = begin(1);
  answer_start(first);
  answer_start(second);
  const NodeId other = add_node(4);
  scheduler_.remove_node(node_);
  context_.commit(command::RemoveNode{node_, "it is gone"});
  actors_.node_lost(node_, "it is gone", {});
  EXPECT_EQ(record(first).phase, ActorPhase::kDead);
  ASSERT_EQ(links_.events.size(), 1u);
  EXPECT_EQ(links_.events[0].first, other);
  EXPECT_EQ(died_events(), 2u);
}

TEST_F(ActorManagerTest, SaysWhenOneThatOutlivesItsJobIsDead) {
  ActorSpec spec = add_actor(job_);
  ActorSpec outliving = spec;
  outliving.actor = ActorId::random();
  outliving.outlives_job = true;
  add_actor(job_, outliving);
  actors_.die(spec.actor, {}, cancelled("over"));
  EXPECT_TRUE(outlived_.empty());
  actors_.die(outliving.actor, {}, cancelled("over"));
  EXPECT_EQ(outlived_, std::vector{job_});
}

TEST_F(ActorManagerTest, ForgetsTheDeadThatAreTooMany) {
  options_.dead_kept = 1;
  for (int i = 0; i < 3; ++i) {
    const ActorSpec spec = add_actor(job_);
    actors_.die(spec.actor, {}, cancelled("over"));
  }
  actors_.tick(time_);
  EXPECT_EQ(tables_.actors().dead(), 3u) << "those that ask may still be on their way";
  time_ = actors_.next_tick();
  actors_.tick(time_);
  EXPECT_EQ(tables_.actors().dead(), 1u);
  EXPECT_EQ(actors_.next_tick(), Deadline::max());
}

}  // namespace
}  // namespace runtime
