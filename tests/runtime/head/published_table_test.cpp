// The published versions as the head records them.
#include "runtime/head/published_table.h"

#include "runtime/head/head_commands.h"
#include "tests/runtime/head/table_writes.h"

namespace runtime {
namespace {

class PublishedTableTest : public ::testing::Test {
 protected:
  using Name = PublishedTable::Name;

  static ObjectLocation copy_on(NodeId node) {
    ObjectLocation location;
    location.id = ObjectId::random();
    location.node = node;
    return location;
  }
  void publish(const Name& name, std::uint64_t version, PublishedValue value) {
    table_.apply(command::Publish{name, version, std::move(value), "type"});
  }
  const PublishedVersion& at(const Name& name, std::uint64_t version) const {
    return table_.find(name)->at(version);
  }
  std::size_t copies(const Name& name, std::uint64_t version) const {
    return std::get<std::vector<ObjectLocation>>(at(name, version).value).size();
  }

  const Name name_{"team", "weights"};
  const NodeId one_ = NodeId::random(), other_ = NodeId::random();
  PublishedTable table_;
};

TEST_F(PublishedTableTest, ANameIsThereWhileItHasVersions) {
  publish(name_, 3, std::string("small"));
  publish(name_, 7, std::string());
  table_.apply(command::Unpublish{name_, 3});
  ASSERT_TRUE(table_.find(name_));
  EXPECT_EQ(table_.find(name_)->size(), 1u);
  table_.apply(command::Unpublish{name_, 7});
  EXPECT_EQ(table_.find(name_), nullptr);
  EXPECT_TRUE(table_.all().empty());
}

TEST_F(PublishedTableTest, NamesOfOtherNamespacesAreNotIn) {
  for (const Name& name :
       {Name("tea", "z"), Name("team", "b"), Name("team", "a"), Name("team2", "a")})
    publish(name, 1, std::string());
  EXPECT_EQ(table_.in("team"), (std::vector{Name("team", "a"), Name("team", "b")}));
  EXPECT_TRUE(table_.in("te").empty());
}

TEST_F(PublishedTableTest, AVersionIsLostWithItsLastCopy) {
  publish(name_, 1, std::vector{copy_on(one_), copy_on(other_)});
  publish(name_, 2, std::vector{copy_on(one_)});
  publish(name_, 3, std::string("at the head"));
  table_.follow();
  table_.remove_node(one_, "it is gone");
  EXPECT_EQ(copies(name_, 1), 1u);
  EXPECT_EQ(at(name_, 1).loss, "");
  EXPECT_EQ(at(name_, 2).loss, "it is gone");
  EXPECT_EQ(at(name_, 3).loss, "");
  EXPECT_EQ(writes_of(table_).size(), 2u) << "of those that have changed";
  table_.remove_node(one_, "it is gone again");
  EXPECT_EQ(at(name_, 2).loss, "it is gone");
  EXPECT_TRUE(writes_of(table_).empty());
}

TEST_F(PublishedTableTest, ACopyThatMovesTakesThePlaceOfTheOldOne) {
  const ObjectLocation kept = copy_on(other_), moved = copy_on(NodeId::random());
  publish(name_, 1, std::vector{copy_on(one_), kept});
  publish(name_, 2, std::vector{copy_on(one_)});
  table_.apply(command::MoveCopy{name_, 1, one_, moved});
  EXPECT_EQ(at(name_, 1).value, PublishedValue(std::vector{kept, moved}));
  table_.remove_node(one_, "it is gone");  // while the copy was made
  table_.apply(command::MoveCopy{name_, 2, one_, moved});
  EXPECT_EQ(at(name_, 2).loss, "");
  EXPECT_EQ(copies(name_, 2), 1u);
}

TEST_F(PublishedTableTest, WhatIsWrittenGivesTheSameTable) {
  table_.follow();
  publish(name_, 1, std::string("dropped"));
  publish(name_, 9, std::vector{copy_on(one_)});
  publish(name_, 10, std::string("\0bytes", 6));
  publish({"", "weights"}, 2, std::string());
  table_.apply(command::Unpublish{name_, 1});
  table_.remove_node(one_, "it is gone");
  PublishedTable restored;
  restored.follow();
  EXPECT_EQ(restore_from<journal::PublishedEntry>(restored, writes_of(table_)), Status());
  EXPECT_TRUE(restored.all() == table_.all());
  EXPECT_TRUE(writes_of(restored).empty()) << "what was restored is written already";
}

TEST_F(PublishedTableTest, AVersionThatIsNotLargerIsNotRestored) {
  journal::PublishedEntry entry;
  entry.name = "weights";
  entry.version = 5;
  EXPECT_TRUE(table_.restore(entry).ok());
  EXPECT_EQ(table_.restore(entry).code(), ErrorCode::kInvalidArgument);
  entry.version = 4;
  EXPECT_EQ(table_.restore(entry).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
