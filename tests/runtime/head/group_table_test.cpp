// The placement groups as the head records them.
#include "runtime/head/group_table.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

class GroupTableTest : public ::testing::Test {
 protected:
  GroupId add(const std::string& name = "", const std::string& name_space = "space") {
    GroupSpec spec;
    spec.group = GroupId::random();
    spec.name = name;
    spec.name_space = name_space;
    spec.bundles.resize(2, {{"CPU", 1}});
    table_.apply(command::AddGroup{job_, spec});
    return spec.group;
  }
  void place(GroupId group, NodeId one, NodeId other) {
    table_.apply(command::GroupPlaced{group, {{one, other}, {{0}, {1}}}});
  }
  std::vector<JournalWrite> changes() {
    std::vector<JournalWrite> writes;
    table_.take_changes(writes);
    return writes;
  }
  static journal::Group entry_of(const JournalWrite& write) {
    EXPECT_TRUE(write.value);
    auto entry = journal::decode(*write.value);
    EXPECT_TRUE(entry.ok()) << entry.status().to_string();
    return std::get<journal::Group>(*std::move(entry));
  }

  using Groups = std::set<GroupId>;
  const JobId job_ = JobId::random();
  const NodeId one_ = NodeId::random(), other_ = NodeId::random(), third_ = NodeId::random();
  GroupTable table_;
};

TEST_F(GroupTableTest, IsFoundByNameInItsNamespaceUntilItIsRemoved) {
  const GroupId group = add("gang"), elsewhere = add("gang", "another");
  add();
  add();
  EXPECT_EQ(table_.named("space", "gang")->spec.group, group);
  EXPECT_EQ(table_.named("another", "gang")->spec.group, elsewhere);
  EXPECT_EQ(table_.named("space", ""), nullptr) << "those without a name have none in common";
  table_.apply(command::RemoveGroup{group});
  EXPECT_EQ(table_.named("space", "gang"), nullptr);
  EXPECT_EQ(table_.find(group), nullptr);
  EXPECT_TRUE(table_.named("another", "gang"));
  const GroupId next = add("gang");
  EXPECT_EQ(table_.named("space", "gang")->spec.group, next) << "the name is free again";
}

TEST_F(GroupTableTest, NodesKnowTheGroupsThatArePlacedOnThem) {
  const GroupId group = add(), both = add();
  EXPECT_TRUE(table_.placed_on(one_).empty());
  place(group, one_, other_);
  place(both, one_, one_);
  EXPECT_EQ(table_.placed_on(one_), (Groups{group, both}));
  EXPECT_EQ(table_.placed_on(other_), Groups{group});
  place(group, other_, third_);
  EXPECT_EQ(table_.placed_on(one_), Groups{both});
  EXPECT_EQ(table_.placed_on(third_), Groups{group});
  table_.apply(command::GroupTorn{both, "a node is gone"});
  EXPECT_TRUE(table_.placed_on(one_).empty());
  table_.apply(command::RemoveGroup{group});
  EXPECT_TRUE(table_.placed_on(other_).empty());
  EXPECT_TRUE(table_.placed_on(third_).empty());
}

TEST_F(GroupTableTest, ATornGroupHasNoPlaceButHadOne) {
  const GroupId group = add();
  table_.apply(command::GroupWaits{group, "no room"});
  EXPECT_EQ(table_.find(group)->pending_reason, "no room");
  EXPECT_FALSE(table_.find(group)->is_torn());
  place(group, one_, other_);
  EXPECT_TRUE(table_.find(group)->placed);
  EXPECT_EQ(table_.find(group)->pending_reason, "");
  EXPECT_EQ(table_.find(group)->gpus.at(1), std::vector<std::uint32_t>{1});
  table_.apply(command::GroupTorn{group, "a node is gone"});
  const GroupState& torn = *table_.find(group);
  EXPECT_TRUE(torn.is_torn());
  EXPECT_EQ(torn.pending_reason, "a node is gone");
  EXPECT_TRUE(torn.nodes.empty());
  EXPECT_TRUE(torn.gpus.empty());
  place(group, other_, third_);
  EXPECT_EQ(table_.find(group)->placements, 2u);
}

TEST_F(GroupTableTest, TheJournalGetsTheGroupAsItIsAndNotWhyItWaits) {
  table_.follow();
  const GroupId group = add("gang");
  place(group, one_, other_);
  std::vector<JournalWrite> writes = changes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].key, journal::key_of(group));
  EXPECT_TRUE(entry_of(writes[0]).state == *table_.find(group));
  table_.apply(command::GroupWaits{group, "said again when it looks for room"});
  EXPECT_TRUE(changes().empty());
  table_.apply(command::RemoveGroup{group});
  writes = changes();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_FALSE(writes[0].value);
}

TEST_F(GroupTableTest, ARestoredTableFindsTheSame) {
  table_.follow();
  const GroupId group = add("gang"), waits = add("waits");
  place(group, one_, other_);
  GroupTable restored;
  for (const JournalWrite& write : changes()) EXPECT_TRUE(restored.restore(entry_of(write)).ok());
  ASSERT_TRUE(restored.end_restore().ok());
  EXPECT_EQ(restored.all().size(), 2u);
  EXPECT_EQ(restored.named("space", "gang")->spec.group, group);
  EXPECT_EQ(restored.named("space", "waits")->spec.group, waits);
  EXPECT_EQ(restored.placed_on(other_), Groups{group});
}

TEST_F(GroupTableTest, RecordsThatContradictEachOtherAreRefused) {
  journal::Group entry;
  entry.state.spec.group = GroupId::random();
  entry.state.spec.name = "gang";
  entry.state.spec.bundles.resize(1);
  EXPECT_TRUE(table_.restore(entry).ok());
  entry.state.spec.group = GroupId::random();
  EXPECT_TRUE(table_.restore(entry).ok());
  const Status twice = table_.end_restore();
  EXPECT_EQ(twice.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(twice.message().find("'gang'"), std::string::npos) << twice.message();
  entry.state.placed = true;
  GroupTable one_without_node;
  EXPECT_TRUE(one_without_node.restore(entry).ok());
  const Status homeless = one_without_node.end_restore();
  EXPECT_EQ(homeless.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(homeless.message().find(entry.state.spec.group.hex()), std::string::npos);
}

}  // namespace
}  // namespace runtime
