// Work that moves off a node that is drained, and work that stays.
#include "runtime/head/work_mover.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class WorkMoverTest : public PartTest {
 protected:
  WorkMoverTest() : node_(add_node(4)), job_(add_job(node_)) {}

  void drain(NodeId node) {
    context_.commit(command::NodeDrains{node, NodeDrain{"preemption", 20s, {}, 0, ""}});
    scheduler_.begin_drain(node);
    drained_.set(node, time_ + 20s);
  }

  const NodeId node_;
  const JobId job_;
  DrainedNodes drained_{context_};
  FakeActors actors_{context_};
  FakeGroups groups_{context_};
  WorkMover work_{context_, drained_, actors_, groups_};
};

TEST_F(WorkMoverTest, MovesWhatMayRestartWhereThereIsRoom) {
  const ActorSpec moves = add_living(job_, 1, -1), stays = add_living(job_);
  drain(node_);
  const NodeId other = add_node(4);
  work_.move(node_);
  ASSERT_EQ(actors_.stops.size(), 1u);
  EXPECT_EQ(actors_.stops[0].actor, moves.actor);
  EXPECT_EQ(actors_.stops[0].grace, 18s) << "a margin is left to save the state";
  EXPECT_TRUE(actors_.stops[0].drain);
  EXPECT_TRUE(record(moves).moving);
  EXPECT_NE(record(stays).pending_reason.find("max_restarts is 0"), std::string::npos);
  ASSERT_EQ(work_.kept_places().size(), 1u);
  EXPECT_EQ(work_.kept_places()[0].to, other);
}

TEST_F(WorkMoverTest, ActorsThatFindNoRoomGetTheReason) {
  const ActorSpec spec = add_living(job_, 1, -1);
  drain(node_);
  work_.move(node_);
  EXPECT_TRUE(actors_.stops.empty());
  EXPECT_NE(record(spec).pending_reason.find("and it stays to the end: no node has CPU"),
            std::string::npos)
      << record(spec).pending_reason;
}

TEST_F(WorkMoverTest, AGangMovesAsAWhole) {
  const GroupSpec group = add_placed_group(job_, 1);
  drain(node_);
  work_.move(node_);
  EXPECT_TRUE(groups_.torn.empty());
  EXPECT_EQ(work_.stranded_groups(), std::set{group.group});
  add_node(4);
  work_.move(node_);
  EXPECT_EQ(groups_.torn, std::vector{group.group});
  EXPECT_EQ(groups_.placed, std::vector{group.group});
  EXPECT_TRUE(work_.stranded_groups().empty());
}

TEST_F(WorkMoverTest, AsksThoseOnTheirWayOnceMore) {
  const ActorSpec spec = add_living(job_, 1, -1);
  drain(node_);
  add_node(4);
  work_.move(node_);
  drained_.set(node_, time_ + 4s);
  work_.ask_again(node_);
  ASSERT_EQ(actors_.stops.size(), 2u);
  EXPECT_EQ(actors_.stops[1].actor, spec.actor);
  EXPECT_EQ(actors_.stops[1].grace, 3s);
}

TEST_F(WorkMoverTest, KeepsThePlacesOfThoseThatAnEarlierHeadMoved) {
  const ActorSpec spec = add_living(job_, 1, -1);
  context_.commit(command::ActorMoves{spec.actor});
  drain(node_);
  const NodeId other = add_node(4);
  work_.keep_places(node_);
  ASSERT_EQ(work_.kept_places().size(), 1u);
  EXPECT_EQ(work_.kept_places()[0].to, other);
  work_.forget(node_);
  EXPECT_TRUE(work_.kept_places().empty());
}

}  // namespace
}  // namespace runtime
