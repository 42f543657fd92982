// The members of the cluster, and those that have left it.
#include "runtime/head/node_table.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

using namespace std::chrono_literals;

class NodeTableTest : public ::testing::Test {
 protected:
  NodeId add() {
    NodeInfo info;
    info.node = NodeId::random();
    info.address = "10.0.0.1:7000";
    table_.apply(command::AddNode{info});
    return info.node;
  }
  void remove(NodeId node, const std::string& why = "it is gone") {
    table_.apply(command::RemoveNode{node, why});
  }
  std::map<std::string, std::optional<std::string>> changes() {
    std::vector<JournalWrite> writes;
    table_.take_changes(writes);
    std::map<std::string, std::optional<std::string>> changed;
    for (JournalWrite& write : writes) changed[write.key] = std::move(write.value);
    return changed;
  }

  NodeTable table_;
};

TEST_F(NodeTableTest, EveryChangeOfTheMembersHasItsVersion) {
  const std::uint64_t before = table_.version();
  const NodeId node = add();
  EXPECT_EQ(table_.version(), before + 1);
  EXPECT_EQ(table_.find(node)->joined_as, before + 1);
  NodeDrain drain{"preemption", 20s, {}, 0, ""};
  table_.apply(command::NodeDrains{node, drain});
  EXPECT_EQ(table_.version(), before + 2);
  EXPECT_EQ(table_.find(node)->drain->version, before + 2) << "filled in";
  EXPECT_EQ(table_.find(node)->joined_as, before + 1);
  remove(node, "it was drained");
  EXPECT_EQ(table_.version(), before + 3);
  EXPECT_EQ(table_.departure(node)->version, before + 3);
}

TEST_F(NodeTableTest, ANodeThatJoinsIsNotDrained) {
  NodeInfo info;
  info.node = NodeId::random();
  info.drain = NodeDrain{"left over", 20s, {}, 0, ""};
  table_.apply(command::AddNode{info});
  EXPECT_FALSE(table_.find(info.node)->drain);
}

TEST_F(NodeTableTest, ADepartureTellsWhyAndWhetherItWasTold) {
  const NodeId lost = add(), drained = add();
  table_.apply(command::NodeDrains{drained, NodeDrain{"preemption", 20s, {}, 0, ""}});
  remove(lost, "it fell silent");
  remove(drained, "it has left");
  EXPECT_FALSE(table_.contains(lost));
  EXPECT_EQ(table_.find(lost), nullptr);
  EXPECT_EQ(table_.departure(lost)->why, "it fell silent");
  EXPECT_EQ(table_.departure(lost)->node.address, "10.0.0.1:7000");
  EXPECT_FALSE(table_.departure(lost)->drained);
  EXPECT_TRUE(table_.departure(drained)->drained);
  EXPECT_EQ(table_.departures().front().node.node, lost) << "oldest first";
  EXPECT_EQ(table_.departure(add()), nullptr);
}

TEST_F(NodeTableTest, TheOldestDeparturesAreForgottenAlsoByTheJournal) {
  const NodeId first = add(), second = add();
  remove(first);
  remove(second);
  for (std::size_t i = 2; i < NodeTable::kDeparturesKept; ++i) remove(add());
  ASSERT_TRUE(table_.departure(first));
  const NodeId last = add();
  table_.follow();
  remove(last);
  EXPECT_EQ(table_.departures().size(), NodeTable::kDeparturesKept);
  EXPECT_EQ(table_.departure(first), nullptr);
  EXPECT_TRUE(table_.departure(second));
  const auto changed = changes();
  EXPECT_EQ(changed.size(), 3u);
  EXPECT_FALSE(changed.at(journal::key_of(last)));
  EXPECT_TRUE(changed.at(journal::key_of_departure(last)));
  EXPECT_FALSE(changed.at(journal::key_of_departure(first)));
}

TEST_F(NodeTableTest, RestoredDeparturesAreInTheOrderInWhichTheyHappened) {
  table_.follow();
  std::vector<NodeId> gone;
  for (int i = 0; i < 8; ++i) gone.push_back(add());
  const NodeId stays = add();
  for (const NodeId& node : gone) remove(node);
  NodeTable restored;
  for (const auto& [key, value] : changes()) {
    if (!value) continue;
    const auto entry = journal::decode(*value);
    ASSERT_TRUE(entry.ok()) << entry.status().to_string();
    const auto* node = std::get_if<journal::Node>(&*entry);
    EXPECT_TRUE(
        (node ? restored.restore(*node) : restored.restore(std::get<journal::Departure>(*entry)))
            .ok());
  }
  restored.restore_version(table_.version());
  restored.end_restore();
  EXPECT_EQ(restored.version(), table_.version());
  EXPECT_TRUE(restored.departures() == table_.departures());
  ASSERT_EQ(restored.all().size(), 1u);
  EXPECT_TRUE(*restored.find(stays) == *table_.find(stays));
}

}  // namespace
}  // namespace runtime
