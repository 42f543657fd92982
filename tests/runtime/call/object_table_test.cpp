#include "runtime/call/object_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/runtime/call/fake_objects.h"

namespace runtime {
namespace {

class ObjectTableTest : public ::testing::Test {
 protected:
  using Kind = StoredObject::Kind;

  std::shared_ptr<StoredObject> make(Kind kind = Kind::kOwned) {
    return make_at(store_->put("abc"), kind);
  }
  std::shared_ptr<StoredObject> make_at(const ObjectLocation& location, Kind kind) {
    return StoredObject::make(store_, table_, location, kind);
  }
  /// What is reported when nothing is lent.
  std::vector<object_wire::ProcessObject> report() const {
    return table_->report([](const auto&) {}).objects;
  }

  const std::shared_ptr<test::FakeStore> store_ = std::make_shared<test::FakeStore>();
  const std::shared_ptr<ObjectTable> table_ = std::make_shared<ObjectTable>();
};

TEST_F(ObjectTableTest, WhatOthersBorrowStaysUntilNoneDoes) {
  std::shared_ptr<StoredObject> object = make();
  const ObjectLocation at = object->location();
  table_->hold(at);
  object.reset();
  EXPECT_TRUE(store_->freed.empty());
  ASSERT_EQ(report().size(), 1u);
  EXPECT_EQ(report()[0].held, 1u);
  EXPECT_EQ(report()[0].handles, 0u);
  table_->unhold(at);
  EXPECT_EQ(store_->freed, std::vector<ObjectLocation>{at});
  EXPECT_TRUE(report().empty());
  table_->hold(at);  // it was freed just before
  table_->unhold(at);
}

TEST_F(ObjectTableTest, WhatIsBorrowedIsNotHeld) {
  std::shared_ptr<StoredObject> object = make(Kind::kBorrowed);
  table_->hold(object->location());
  const std::weak_ptr<StoredObject> weak = object;
  object.reset();
  EXPECT_TRUE(weak.expired());
}

TEST_F(ObjectTableTest, AtTheEndNothingIsHeld) {
  std::shared_ptr<StoredObject> object = make();
  table_->hold(object->location());
  object.reset();
  table_->clear();
  EXPECT_EQ(store_->freed.size(), 1u);
}

TEST_F(ObjectTableTest, FindsWhatIsBorrowedFromANode) {
  const std::shared_ptr<StoredObject> own = make(), here = make(Kind::kBorrowed),
                                      there = make(Kind::kPassedOn);
  // Several references to one object.
  const std::shared_ptr<StoredObject> again = make_at(there->location(), Kind::kBorrowed);
  const auto from = [&](NodeId node) {
    auto found = table_->borrowed_from(node);
    return std::set<std::shared_ptr<StoredObject>>(found.begin(), found.end());
  };
  EXPECT_EQ(from(here->location().node), (std::set<std::shared_ptr<StoredObject>>{here}));
  EXPECT_EQ(from(there->location().node), (std::set<std::shared_ptr<StoredObject>>{there, again}));
  EXPECT_TRUE(from(own->location().node).empty());
  EXPECT_TRUE(from(NodeId::random()).empty());
}

TEST_F(ObjectTableTest, OneOfSeveralOfAnObjectMakesItAgain) {
  std::shared_ptr<StoredObject> first = make(Kind::kConfirmed);
  const ObjectLocation at = first->location();
  std::shared_ptr<StoredObject> second = make_at(at, Kind::kConfirmed);
  EXPECT_EQ(table_->find_remakeable(at.id), nullptr);
  table_->add_remakeable(first);
  table_->add_remakeable(second);
  first.reset();
  EXPECT_EQ(table_->find_remakeable(at.id), second);
  second.reset();
  EXPECT_EQ(table_->find_remakeable(at.id), nullptr);
}

TEST_F(ObjectTableTest, ReportsHandlesAndWhatIsLent) {
  const std::shared_ptr<StoredObject> own = make();
  const std::shared_ptr<StoredObject> same = own;
  const std::shared_ptr<StoredObject> borrowed = make(Kind::kBorrowed);
  const std::shared_ptr<StoredObject> again = make_at(borrowed->location(), Kind::kBorrowed);
  const object_wire::ProcessReport all = table_->report([&](const auto& visit) {
    visit(own->location(), false);
    visit(own->location(), true);
    visit(borrowed->location(), false);
  });
  ASSERT_EQ(all.objects.size(), 2u);
  const object_wire::ProcessObject &first = all.objects[0], &second = all.objects[1];
  EXPECT_EQ(first.location, own->location());
  EXPECT_TRUE(first.owned);
  EXPECT_EQ(first.handles, 2u);
  EXPECT_EQ(first.lent, 2u);
  EXPECT_EQ(first.in_flight, 1u);
  EXPECT_EQ(first.held, 0u);
  EXPECT_EQ(second.location, borrowed->location());
  EXPECT_FALSE(second.owned);
  EXPECT_EQ(second.handles, 2u);
  EXPECT_EQ(second.lent, 1u);
  EXPECT_EQ(second.in_flight, 0u);
}

}  // namespace
}  // namespace runtime
