// The store's bookkeeping: who copies from whom, and who borrows what.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/store/borrow_table.h"
#include "runtime/store/source_tree.h"

namespace runtime::object_detail {
namespace {

ObjectLocation location(NodeId node, std::uint64_t extent, std::string endpoint = "a:1") {
  return {ObjectId::random(), node, std::move(endpoint), 0, extent, 64, 1000};
}

TEST(BorrowTable, TheFirstAndTheLastAreTold) {
  BorrowTable table;
  const ObjectLocation object = location(NodeId::random(), 5);
  EXPECT_TRUE(table.add(1, object));
  EXPECT_FALSE(table.add(1, object));
  EXPECT_FALSE(table.add(2, object));
  EXPECT_FALSE(table.remove(1, object));
  EXPECT_FALSE(table.remove(2, object));
  EXPECT_FALSE(table.remove(2, object)) << "not borrowed any more";
  EXPECT_TRUE(table.remove(1, object));
  EXPECT_FALSE(table.has(object));
  EXPECT_EQ(table.size(), 0u);
}

TEST(BorrowTable, OneThatIsNotCountedIsThereOnce) {
  BorrowTable table;
  const ObjectLocation object = location(NodeId::random(), 5);
  EXPECT_TRUE(table.add(1, object, false));
  EXPECT_FALSE(table.add(1, object, false));
  EXPECT_TRUE(table.remove(1, object));
}

TEST(BorrowTable, AnEndedClientBorrowsNothing) {
  BorrowTable table;
  const NodeId own = NodeId::random(), other = NodeId::random();
  const ObjectLocation here = location(own, 1), there = location(other, 1, "b:2"),
                       both = location(other, 2, "b:2");
  table.add(1, here);
  table.add(1, there);
  table.add(1, both);
  table.add(2, both);
  EXPECT_EQ(table.at("b:2", own).size(), 2u);
  EXPECT_EQ(table.drop(1).size(), 2u) << "the other client still has one";
  EXPECT_TRUE(table.has(both));
  EXPECT_TRUE(table.drop(1).empty());
  EXPECT_EQ(table.drop(2), std::vector<ObjectLocation>{both});
}

TEST(SourceTree, TheRootServesFewAndEveryNodeIsReached) {
  SourceTree tree;
  const ObjectId object = ObjectId::random();
  std::map<std::string, int> children;
  std::set<std::string> reached;
  for (int i = 0; i < 31; ++i) {
    const std::string asker = "node " + std::to_string(i);
    const std::string parent = tree.assign(1, object, asker, "");
    EXPECT_TRUE(parent.empty() || reached.contains(parent)) << parent;
    ++children[parent];
    reached.insert(asker);
  }
  for (const auto& [parent, count] : children) EXPECT_LE(count, SourceTree::kFanOut) << parent;
  EXPECT_EQ(children[""], SourceTree::kFanOut);
}

TEST(SourceTree, WhoLosesItsParentIsServedByTheRootAndNoNodeIsSentThere) {
  SourceTree tree;
  const ObjectId object = ObjectId::random();
  EXPECT_EQ(tree.assign(1, object, "a", ""), "");
  EXPECT_EQ(tree.assign(1, object, "b", ""), "");
  EXPECT_EQ(tree.assign(1, object, "c", ""), "a");
  EXPECT_EQ(tree.assign(1, object, "c", "a"), "") << "a did not do";
  EXPECT_EQ(tree.assign(1, object, "d", ""), "b") << "a is out of the tree";
  EXPECT_EQ(tree.assign(2, object, "d", ""), "") << "another extent";
  EXPECT_EQ(tree.take(1).objects, std::vector<ObjectId>{object});
  EXPECT_TRUE(tree.take(1).objects.empty());
}

}  // namespace
}  // namespace runtime::object_detail
