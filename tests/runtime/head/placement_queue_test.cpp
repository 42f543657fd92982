// The queue of unplaced work: the order in which it looks, and the time when it gives up.
#include "runtime/head/placement_queue.h"

#include <set>

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class PlacementQueueTest : public PartTest {
 protected:
  PlacementQueueTest() : node_(add_node(4)), job_(add_job(node_)) {}

  PlacementQueue::Hooks hooks() {
    return {
        .is_under_way = [this](GroupId group) { return under_way_.contains(group); },
        .place_group =
            [this](GroupId group) {
              asked_.push_back("group");
              context_.commit(command::GroupWaits{group, "no room for the group"});
              return has_room_;
            },
        .place_actor =
            [this](ActorId actor, Deadline) {
              asked_.push_back("actor");
              context_.commit(command::ActorWaits{actor, "no room"});
              return has_room_;
            },
        .looked_at_all = [this] { ++looks_; },
        .group_late =
            [this](GroupId group) {
              late_groups_.push_back(group);
              queue_.remove(group);
            },
        .actor_late =
            [this](ActorId actor) {
              late_actors_.push_back(actor);
              queue_.remove(actor);
            },
    };
  }

  const NodeId node_;
  const JobId job_;
  bool has_room_ = false;
  std::set<GroupId> under_way_;
  std::vector<std::string> asked_;
  std::vector<GroupId> late_groups_;
  std::vector<ActorId> late_actors_;
  int looks_ = 0;
  PlacementQueue queue_{context_, hooks()};
};

TEST_F(PlacementQueueTest, GroupsLookBeforeActors) {
  queue_.add(add_actor(job_).actor, time_ + 1s);
  queue_.add(add_group(job_, 1).group, time_ + 1s);
  queue_.place_all();
  EXPECT_EQ(asked_, (std::vector<std::string>{"group", "actor"}));
  EXPECT_EQ(looks_, 1);
}

TEST_F(PlacementQueueTest, OneOfThoseThatAreAlikeLooksAndTheOthersGetItsReason) {
  const ActorSpec first = add_actor(job_, 8), second = add_actor(job_, 8);
  queue_.add(first.actor, time_ + 1h);
  queue_.add(second.actor, time_ + 1h);
  queue_.add(add_actor(job_, 9).actor, time_ + 1h);
  queue_.place_all();
  EXPECT_EQ(asked_.size(), 2u);
  EXPECT_EQ(record(second).pending_reason, "");
  time_ = queue_.next_tick();
  queue_.tick(time_);
  EXPECT_EQ(record(second).pending_reason, "no room");
}

TEST_F(PlacementQueueTest, AGroupWhoseNodesAreAskedIsLeftAlone) {
  const GroupSpec group = add_group(job_, 1);
  queue_.add(group.group, time_ + 1h);
  under_way_.insert(group.group);
  queue_.place_all();
  EXPECT_TRUE(asked_.empty());
}

TEST_F(PlacementQueueTest, WhatFindsAPlaceLeaves) {
  queue_.add(add_actor(job_).actor, time_ + 1s);
  has_room_ = true;
  queue_.place_all();
  EXPECT_EQ(queue_.actors().size(), 0u);
  EXPECT_EQ(queue_.next_tick(), time_ + 1s) << "a tick too many is allowed";
  queue_.tick(time_ + 1s);
  EXPECT_EQ(queue_.next_tick(), Deadline::max());
}

TEST_F(PlacementQueueTest, GivesUpAtTheDeadlines) {
  const ActorSpec actor = add_actor(job_), patient = add_actor(job_);
  const GroupSpec group = add_group(job_, 1);
  queue_.add(actor.actor, time_ + 2s);
  queue_.add(patient.actor, time_ + 2s);
  queue_.extend(patient.actor, time_ + 3s);
  queue_.add(group.group, time_ + 1s);
  EXPECT_EQ(queue_.next_tick(), time_ + 1s);
  queue_.tick(time_ + 1s);
  EXPECT_EQ(late_groups_, std::vector{group.group});
  EXPECT_EQ(queue_.next_tick(), time_ + 2s);
  queue_.tick(time_ + 2s);
  EXPECT_EQ(late_actors_, std::vector{actor.actor});
  EXPECT_EQ(queue_.next_tick(), time_ + 3s);
}

TEST_F(PlacementQueueTest, ARestartThatIsHeldBackLooksOnceItsPauseIsOver) {
  queue_.add(add_actor(job_).actor, Deadline::max(), time_ + 100ms);
  queue_.place_all();
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(queue_.next_tick(), time_ + 100ms);
  time_ += 100ms;
  queue_.tick(time_);
  EXPECT_EQ(asked_, std::vector<std::string>{"actor"});
}

}  // namespace
}  // namespace runtime
