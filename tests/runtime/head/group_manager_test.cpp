// The two phases of a placement group's reservation, without the rest of the head.
#include "runtime/head/group_manager.h"

#include "parts_fixture.h"
#include "queue_hooks.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class GroupManagerTest : public PartTest {
 protected:
  GroupManagerTest() : node_(add_node(1)), other_(add_node(1)), job_(add_job(node_)) {}

  GroupSpec begin(std::size_t bundles) {
    const GroupSpec spec = add_group(job_, bundles);
    groups_.begin(spec.group, time_ + 10s);
    return spec;
  }
  /// Answers the messages to nodes as nodes would that hold everything.
  int hold_all() {
    int count = 0;
    for (auto sent = links_.take<control::Reserve>(); sent;
         sent = links_.take<control::Reserve>()) {
      sent->answer(ControlAnswer{control::Refusals{}});
      ++count;
    }
    return count;
  }
  ActorSpec add_member(const GroupSpec& group, std::uint32_t index, std::int32_t max_restarts) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.max_restarts = max_restarts;
    spec.bundle = BundleSlot{group.group, index};
    return add_actor(job_, spec);
  }

  const NodeId node_, other_;
  const JobId job_;
  std::vector<std::pair<GroupId, Status>> decided_;
  FakeActors actors_{context_};
  PlacementQueue queue_{context_, hooks_of(groups_)};
  GroupManager groups_{context_, queue_, actors_, [this](GroupId group, const Status& status) {
                         decided_.emplace_back(group, status);
                       }};
};

TEST_F(GroupManagerTest, IsPlacedOnceAllItsNodesHoldIt) {
  const GroupSpec spec = begin(2);
  EXPECT_TRUE(groups_.is_under_way(spec.group));
  EXPECT_EQ(groups_.places_under_way().size(), 1u);
  links_.take<control::Reserve>()->answer(ControlAnswer{control::Refusals{}});
  EXPECT_FALSE(tables_.groups().find(spec.group)->placed);
  EXPECT_EQ(hold_all(), 1);
  EXPECT_TRUE(tables_.groups().find(spec.group)->placed);
  ASSERT_EQ(decided_.size(), 1u);
  EXPECT_TRUE(decided_[0].second.ok());
  EXPECT_EQ(queue_.groups().size(), 0u);
}

TEST_F(GroupManagerTest, ANodeThatRefusesGetsNothingNewForAMoment) {
  const GroupSpec spec = begin(2);
  links_.take<control::Reserve>()->answer(
      ControlAnswer{control::Refusals{{{spec.group, "no room"}}}});
  EXPECT_FALSE(groups_.is_under_way(spec.group)) << "the other node is not enough";
  EXPECT_EQ(tables_.groups().find(spec.group)->pending_reason, "no room for the group");
  hold_all();
  time_ += 1s;
  groups_.tick(time_);
  EXPECT_TRUE(groups_.is_under_way(spec.group));
}

TEST_F(GroupManagerTest, ALateGroupIsDroppedWithItsMembers) {
  const GroupSpec spec = begin(3);
  const ActorSpec member = add_member(spec, 0, 0);
  queue_.tick(time_ + 10s);
  EXPECT_EQ(tables_.groups().find(spec.group), nullptr);
  ASSERT_EQ(decided_.size(), 1u);
  EXPECT_EQ(decided_[0].second.code(), ErrorCode::kResourceExhausted);
  ASSERT_EQ(actors_.deaths.size(), 1u);
  EXPECT_EQ(actors_.deaths[0].first, member.actor);
}

TEST_F(GroupManagerTest, AGroupThatHasLostANodeWaitsForItsActorsToEnd) {
  const GroupSpec spec = begin(2);
  hold_all();
  const ActorSpec member = add_member(spec, 0, -1);
  make_alive(member);
  const NodeId lost = record(member).node == node_ ? other_ : node_;
  scheduler_.remove_node(lost);
  context_.commit(command::RemoveNode{lost, "it is gone"});
  EXPECT_EQ(groups_.node_lost(lost, "it is gone"), std::set{spec.group});
  EXPECT_TRUE(tables_.groups().find(spec.group)->is_torn());
  ASSERT_EQ(actors_.stops.size(), 1u);
  EXPECT_EQ(actors_.stops[0].actor, member.actor);
  add_node(1);
  queue_.place_all();
  EXPECT_FALSE(groups_.is_under_way(spec.group));
  context_.commit(command::ActorRestarts{member.actor, {}});
  queue_.place_all();
  EXPECT_TRUE(groups_.is_under_way(spec.group));
}

TEST_F(GroupManagerTest, ANodeThatIsBackGetsAllThatItIsToHold) {
  const GroupSpec placed = begin(1);
  hold_all();
  groups_.tick(groups_.next_tick());
  hold_all();
  const NodeId holder = tables_.groups().find(placed.group)->nodes.front();
  groups_.node_returned(holder);
  const auto sent = links_.take<control::Reserve>();
  ASSERT_TRUE(sent);
  const auto& said = std::get<control::Reserve>(sent->request.body);
  EXPECT_TRUE(said.reset);
  EXPECT_EQ(said.commit, std::vector{placed.group});
}

}  // namespace
}  // namespace runtime
