#include "placement/autoscaler/planner.h"

#include <gtest/gtest.h>

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::Status;

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() {
    config_.max_nodes = 6;
    config_.up_cooldown = 0s;
    config_.down_cooldown = 10s;
    config_.idle_timeout = 30s;
    config_.start_timeout = 60s;
    NodeType type;
    type.name = "w";
    type.resources = *Resources::from_map({{"CPU", 4}});
    type.max_nodes = 4;
    config_.types.push_back(type);
    add_node({{"CPU", 1}});
    demand_.nodes[0].info.is_head = true;
  }
  NodePlanner& planner() {
    if (!planner_)
      planner_ = std::make_unique<NodePlanner>(
          config_, [this](const std::string& type) { return type + "-" + std::to_string(++ids_); });
    return *planner_;
  }
  void wait(std::chrono::milliseconds time) { now_ += time; }
  PlanActions step() { return planner().step(demand_, now_); }

  void add_node(const runtime::ResourceMap& resources, runtime::Labels labels = {}) {
    runtime::NodeUse use;
    use.info.node = runtime::NodeId::random();
    use.info.resources = use.info.available = resources;
    use.info.labels = std::move(labels);
    demand_.nodes.push_back(use);
  }
  void join(const NodeRecord& record, const runtime::ResourceMap& resources = {{"CPU", 4}}) {
    add_node(resources, config_.type(record.type)->labels_of(record.id, record.capacity));
  }
  void drain(const std::string& id) {
    use_of(id).info.drain.emplace();
    use_of(id).info.drain->reason = "preemption";
  }
  void leave(const std::string& id) {
    std::erase_if(demand_.nodes, [&](const runtime::NodeUse& use) { return use_id(use) == id; });
  }
  static std::string use_id(const runtime::NodeUse& use) {
    auto label = use.info.labels.find(std::string(kAutoscalerIdLabel));
    return label == use.info.labels.end() ? "" : label->second;
  }
  runtime::NodeUse& use_of(const std::string& id) {
    for (runtime::NodeUse& use : demand_.nodes) {
      if (use_id(use) == id) return use;
    }
    CHECK(false);
    return demand_.nodes[0];
  }
  void pending(std::uint64_t count, double cpus = 4) {
    demand_.actors.clear();
    if (count > 0) demand_.actors.push_back({{{"CPU", cpus}}, {}, count, "actor A"});
  }
  /// Adds `count` nodes that join and are idle.
  std::vector<NodeRecord> grown(std::size_t count) {
    pending(count);
    std::vector<NodeRecord> added = step().add;
    EXPECT_EQ(added.size(), count);
    for (const NodeRecord& record : added) {
      planner().added(record.id, {}, now_);
      join(record);
    }
    pending(0);
    step();
    return added;
  }
  NodePhase phase(const std::string& id) { return planner().nodes().at(id).phase; }

  AutoscalerConfig config_;
  runtime::Demand demand_;
  runtime::Deadline now_ = runtime::Deadline() + 1000h;
  std::unique_ptr<NodePlanner> planner_;
  int ids_ = 0;
};

TEST_F(PlannerTest, AsksOnceForWhatIsMissing) {
  pending(2);
  PlanActions actions = step();
  ASSERT_EQ(actions.add.size(), 2u);
  EXPECT_EQ(actions.add[0].phase, NodePhase::kWanted);
  wait(1s);
  EXPECT_TRUE(step().empty());  // while the provider is busy with it
  planner().added(actions.add[0].id, {}, now_);
  EXPECT_EQ(phase(actions.add[0].id), NodePhase::kStarting);
  join(actions.add[1]);  // before the provider has said so
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(phase(actions.add[1].id), NodePhase::kJoined);
  planner().added(actions.add[1].id, {}, now_);
  EXPECT_EQ(phase(actions.add[1].id), NodePhase::kJoined);
  EXPECT_TRUE(step().empty());
}

TEST_F(PlannerTest, StopsAtItsLimits) {
  pending(100);
  EXPECT_EQ(step().add.size(), 4u);  // of the type
  EXPECT_EQ(planner().demand()[0].unmet, 96u);
  config_.types[0].max_nodes = 100;
  add_node({{"CPU", 1}});  // not the autoscaler's
  planner_.reset();
  EXPECT_EQ(step().add.size(), 4u);  // 6 in all
  EXPECT_EQ(planner().demand()[0].reason, "max_nodes, 6, is reached");
}

TEST_F(PlannerTest, NodesThatAreBeingRemovedCountStill) {
  config_.types[0].max_nodes = 1;
  const std::string id = grown(1)[0].id;
  wait(31s);
  ASSERT_EQ(step().retire.size(), 1u);
  planner().retired(id, {}, now_);
  drain(id);
  pending(1);
  EXPECT_TRUE(step().empty());
  leave(id);
  const PlanActions actions = step();
  EXPECT_EQ(actions.remove.size(), 1u);
  EXPECT_TRUE(actions.add.empty());
  planner().removed(id, {}, now_);
  EXPECT_EQ(step().add.size(), 1u);
}

TEST_F(PlannerTest, RemovesIdleNodesByAskingTheHeadFirst) {
  const std::vector<NodeRecord> nodes = grown(2);
  use_of(nodes[0].id).actors = 1;
  wait(29s);
  EXPECT_TRUE(step().empty());
  wait(2s);
  PlanActions actions = step();
  ASSERT_EQ(actions.retire.size(), 1u);
  EXPECT_EQ(actions.retire[0].id, nodes[1].id);
  planner().retired(nodes[1].id, {}, now_);
  drain(nodes[1].id);
  wait(10s);
  EXPECT_TRUE(step().empty());  // others take over what they need of its objects
  leave(nodes[1].id);
  actions = step();
  ASSERT_EQ(actions.remove.size(), 1u);
  EXPECT_EQ(actions.remove[0].reason, "idle for 31.0 s");
  planner().removed(nodes[1].id, {}, now_);
  EXPECT_EQ(planner().nodes().size(), 1u);
  EXPECT_TRUE(step().empty());
  EXPECT_TRUE(planner().failures().empty());
}

TEST_F(PlannerTest, ANodeThatGotWorkMeanwhileStays) {
  const std::string id = grown(1)[0].id;
  wait(31s);
  ASSERT_EQ(step().retire.size(), 1u);
  planner().retired(id, runtime::resource_exhausted("it is not idle: 1 actor"), now_);
  EXPECT_EQ(phase(id), NodePhase::kJoined);
  use_of(id).actors = 1;
  wait(1h);
  EXPECT_TRUE(step().empty());
  use_of(id).actors = 0;
  step();
  wait(29s);
  EXPECT_TRUE(step().empty());  // idle again
  wait(2s);
  EXPECT_EQ(step().retire.size(), 1u);
  planner().retired(id, runtime::unavailable("the head is away"), now_);
  EXPECT_TRUE(step().empty());
  wait(2s);
  EXPECT_EQ(step().retire.size(), 1u);  // asked again
}

TEST_F(PlannerTest, WorkBetweenTwoLooksIsSeen) {
  const std::string id = grown(1)[0].id;
  for (int i = 0; i < 10; ++i) {
    wait(20s);
    use_of(id).last_placed += 1;  // it came and went
    EXPECT_TRUE(step().empty());
  }
}

TEST_F(PlannerTest, ANodeThatSomethingWaitsForIsNotIdle) {
  const std::string id = grown(1)[0].id;
  wait(1h);
  pending(1, 3);
  EXPECT_TRUE(step().empty());
  pending(0);
  EXPECT_EQ(step().retire.size(), 1u);
}

TEST_F(PlannerTest, KeepsMinima) {
  config_.types[0].min_nodes = 2;
  std::vector<NodeRecord> added = step().add;
  ASSERT_EQ(added.size(), 2u);
  for (const NodeRecord& record : added) planner().added(record.id, {}, now_), join(record);
  step();
  wait(1h);
  EXPECT_TRUE(step().empty());
  leave(added[0].id);
  const PlanActions actions = step();
  EXPECT_EQ(actions.remove.size(), 1u);  // whatever is left of it
  EXPECT_EQ(actions.add.size(), 1u);
}

TEST_F(PlannerTest, MinNodesCountsNodesOfAllUsers) {
  config_.min_nodes = 4;
  add_node({{"CPU", 1}});
  EXPECT_EQ(step().add.size(), 2u);
  add_node({{"CPU", 1}});
  EXPECT_TRUE(step().add.empty());
}

TEST_F(PlannerTest, NeverRemovesWhatOthersStarted) {
  for (int i = 0; i < 9; ++i) add_node({{"CPU", 4}}, {{"mine", "yes"}});
  wait(10h);
  EXPECT_TRUE(step().empty());
  EXPECT_EQ(planner().others(), 10u);
}

TEST_F(PlannerTest, CoolsDown) {
  config_.up_cooldown = 20s;
  pending(1);
  EXPECT_EQ(step().add.size(), 1u);
  wait(5s);
  pending(2);
  EXPECT_TRUE(step().empty());
  ASSERT_EQ(planner().holding_back().size(), 1u);
  EXPECT_NE(planner().holding_back()[0].find("in 15.0 s"), std::string::npos)
      << planner().holding_back()[0];
  wait(16s);
  EXPECT_EQ(step().add.size(), 1u);
}

TEST_F(PlannerTest, ChangesPutOffRemovals) {
  const std::string id = grown(1)[0].id;
  wait(29s);
  pending(2);
  use_of(id).info.available = {{"CPU", 1}};  // so that two more are needed
  EXPECT_EQ(step().add.size(), 2u);
  pending(0);
  wait(5s);
  EXPECT_TRUE(step().retire.empty());
  EXPECT_EQ(planner().holding_back().size(), 1u);
  wait(6s);
  EXPECT_EQ(step().retire.size(), 1u);
}

TEST_F(PlannerTest, FailuresAreCleanedUpAndBackedOff) {
  pending(1);
  std::string id = step().add.at(0).id;
  planner().added(id, runtime::task_failed("exit code 1: quota"), now_);
  PlanActions actions = step();
  EXPECT_TRUE(actions.add.empty());
  ASSERT_EQ(actions.remove.size(), 1u);  // half a node may be there
  EXPECT_NE(planner().demand()[0].reason.find("quota"), std::string::npos)
      << planner().demand()[0].reason;
  planner().removed(id, {}, now_);
  std::chrono::seconds pause = 5s;
  for (int i = 0; i < 4; ++i) {
    wait(pause - 1s);
    EXPECT_TRUE(step().empty());
    wait(1s);
    id = step().add.at(0).id;
    planner().added(id, runtime::task_failed("again"), now_);
    step();
    planner().removed(id, {}, now_);
    pause *= 2;
  }
  wait(1h);
  id = step().add.at(0).id;
  planner().added(id, {}, now_);
  join({id, "w"});
  step();
  EXPECT_EQ(planner().health("w", Capacity::kOnDemand)->failures, 0u);
}

TEST_F(PlannerTest, ANodeThatNeverJoinsIsGivenUp) {
  pending(1);
  const std::string id = step().add.at(0).id;
  wait(2h);
  EXPECT_TRUE(step().empty());  // the provider has its own limit
  planner().added(id, {}, now_);
  PlanActions actions = step();
  ASSERT_EQ(actions.remove.size(), 1u);
  EXPECT_TRUE(actions.add.empty());
  planner().removed(id, runtime::unavailable("no"), now_);
  EXPECT_TRUE(step().empty());
  wait(5s);
  actions = step();
  EXPECT_EQ(actions.remove.size(), 1u);  // until it is gone
  EXPECT_EQ(actions.add.size(), 1u);
  EXPECT_NE(actions.add[0].id, id);
}

TEST_F(PlannerTest, SpotFallsBackWhenThereIsNone) {
  config_.types[0].spot.share = 1;
  config_.types[0].spot.fallback = 60s;
  pending(1);
  NodeRecord spot = step().add.at(0);
  EXPECT_EQ(spot.capacity, Capacity::kSpot);
  planner().added(spot.id, runtime::resource_exhausted("no spot"), now_);
  EXPECT_TRUE(planner().nodes().empty());  // nothing to remove
  NodeRecord instead = step().add.at(0);
  EXPECT_EQ(instead.capacity, Capacity::kOnDemand);
  EXPECT_NE(instead.reason.find("spot nodes are short"), std::string::npos) << instead.reason;
  planner().added(instead.id, {}, now_);
  join(instead);
  use_of(instead.id).info.available = {};
  wait(61s);
  EXPECT_EQ(step().add.at(0).capacity, Capacity::kSpot);
}

TEST_F(PlannerTest, SpotFallsBackWhenItIsTakenAgainAndAgain) {
  config_.types[0].spot.share = 1;
  pending(1);
  std::string id = step().add.at(0).id;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(planner().nodes().at(id).capacity, Capacity::kSpot);
    planner().added(id, {}, now_);
    join(planner().nodes().at(id));
    step();
    wait(2min);
    leave(id);
    const PlanActions actions = step();
    ASSERT_EQ(actions.remove.size(), 1u);
    ASSERT_EQ(actions.add.size(), 1u);
    planner().removed(id, {}, now_);
    id = actions.add[0].id;
  }
  EXPECT_EQ(planner().nodes().at(id).capacity, Capacity::kOnDemand);
}

TEST_F(PlannerTest, WithoutAFallbackSpotIsWaitedFor) {
  config_.types[0].spot = {.share = 1, .fallback = 0s};
  pending(1);
  planner().added(step().add.at(0).id, runtime::resource_exhausted("no spot"), now_);
  EXPECT_TRUE(step().empty());
  wait(6s);
  EXPECT_EQ(step().add.at(0).capacity, Capacity::kSpot);
}

TEST_F(PlannerTest, ANodeThatDiesAtOnceIsAFailure) {
  pending(1);
  const std::string id = step().add.at(0).id;
  planner().added(id, {}, now_);
  join({id, "w"});
  step();
  wait(3s);
  leave(id);
  PlanActions actions = step();
  EXPECT_EQ(actions.remove.size(), 1u);
  EXPECT_TRUE(actions.add.empty());  // after a pause, else it would be tried without end
  planner().removed(id, {}, now_);
  wait(5s);
  EXPECT_EQ(step().add.size(), 1u);
}

TEST_F(PlannerTest, ANodeWithLessThanItsTypeSaysIsNotAskedForAgain) {
  pending(1);
  const std::string id = step().add.at(0).id;
  planner().added(id, {}, now_);
  join({id, "w"}, {{"CPU", 2}});
  EXPECT_TRUE(step().add.empty());
  EXPECT_EQ(planner().demand()[0].unmet, 1u);
  EXPECT_NE(planner().failures().back().text.find("CPU 4 (has 2)"), std::string::npos)
      << planner().failures().back().text;
}

TEST_F(PlannerTest, MemoryThatATypeDoesNotSayIsKnownOnceANodeHasJoined) {
  demand_.actors.push_back({{{"CPU", 4}, {"memory", 8e9}}, {}, 1, "actor A"});
  const std::vector<NodeRecord> added = step().add;
  ASSERT_EQ(added.size(), 1u);
  planner().added(added[0].id, {}, now_);
  EXPECT_TRUE(step().add.empty()) << "the one on its way may hold it";
  join(added[0], {{"CPU", 4}, {"memory", 4e9}});
  EXPECT_TRUE(step().add.empty());
  ASSERT_EQ(planner().demand()[0].unmet, 1u);
  EXPECT_NE(planner().demand()[0].reason.find("memory"), std::string::npos)
      << planner().demand()[0].reason;
}

TEST_F(PlannerTest, GoesOnFromItsRecords) {
  pending(3);
  const std::vector<NodeRecord> added = step().add;
  planner().added(added[0].id, {}, now_);
  join(added[1]);
  step();
  const auto records = decode_records(encode_records(planner().records()));
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_EQ(*records, planner().records());
  planner_.reset();
  planner().restore(*records, now_);
  const PlanActions actions = step();
  ASSERT_EQ(actions.add.size(), 1u);  // again: was it asked for?
  EXPECT_EQ(actions.add[0].id, added[2].id);
  EXPECT_TRUE(actions.retire.empty() && actions.remove.empty());
}

TEST_F(PlannerTest, AdoptsItsNodesWithoutARecord) {
  join({"w-old", "w"});
  pending(1, 3);
  EXPECT_TRUE(step().empty());  // that one has room
  EXPECT_EQ(phase("w-old"), NodePhase::kJoined);
  pending(0);
  step();
  wait(31s);
  EXPECT_EQ(step().retire.size(), 1u);
}

TEST_F(PlannerTest, OrphansAtTheProviderAreRemoved) {
  pending(2);
  const std::vector<NodeRecord> added = step().add;
  planner().added(added[0].id, {}, now_);
  planner().added(added[1].id, {}, now_);
  wait(1s);
  const auto asked = now_;
  wait(1s);
  planner().listed({"w-lost", added[0].id}, asked, now_);
  const PlanActions actions = step();
  ASSERT_EQ(actions.remove.size(),
            2u);  // the unknown one, and what is left of the one that the provider has no more
  EXPECT_EQ(phase("w-lost"), NodePhase::kRemoving);
  EXPECT_EQ(phase(added[1].id), NodePhase::kRemoving);
  EXPECT_EQ(phase(added[0].id), NodePhase::kStarting);
}

TEST_F(PlannerTest, ANodeThatStaysAfterItsRemovalIsRemovedAgain) {
  const std::string id = grown(1)[0].id;
  wait(31s);
  step();
  planner().retired(id, {}, now_);
  drain(id);
  wait(34s);
  EXPECT_TRUE(step().empty());
  wait(1s);
  EXPECT_EQ(step().remove.size(), 1u);  // it does not go by itself
  planner().removed(id, {}, now_);
  wait(30s);
  EXPECT_TRUE(step().empty());
  wait(31s);
  EXPECT_EQ(step().remove.size(), 1u);
}

TEST_F(PlannerTest, ANodeThatIsLeavingIsNeitherRoomNorIdle) {
  const std::string id = grown(1)[0].id;
  drain(id);
  wait(1h);
  pending(1);
  const PlanActions actions = step();
  EXPECT_TRUE(actions.retire.empty());
  EXPECT_EQ(actions.add.size(), 1u);
}

TEST_F(PlannerTest, ANodeThatWasDrainedHasNotFailed) {
  const std::string id = grown(1)[0].id;
  drain(id);
  step();
  leave(id);
  pending(1);
  const PlanActions actions = step();
  EXPECT_EQ(actions.remove.size(), 1u);
  EXPECT_EQ(actions.add.size(), 1u);  // without a pause, however short it was there
  ASSERT_EQ(planner().failures().size(), 1u);
  EXPECT_NE(planner().failures()[0].text.find("drained: preemption"), std::string::npos)
      << planner().failures()[0].text;
}

TEST_F(PlannerTest, TooManyAreRemovedAtOnce) {
  grown(4);
  const auto records = planner().records();
  config_.max_nodes = 3;
  planner_.reset();
  planner().restore(records, now_);
  EXPECT_EQ(step().retire.size(), 2u);  // one node is the head's
}

}  // namespace
}  // namespace placement
