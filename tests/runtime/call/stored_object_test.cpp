#include "runtime/call/stored_object.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/lineage.h"
#include "tests/runtime/call/fake_objects.h"

namespace runtime {
namespace {

/// Gives what the test says.
struct FakeLineage final : Lineage {
  std::string maker() const override { return "task resize"; }
  Result<ObjectStatePtr> make_again(const ObjectLocation& lost) override {
    asked.push_back(lost);
    return next;
  }

  Result<ObjectStatePtr> next = unimplemented("nothing is made again");
  std::vector<ObjectLocation> asked;
};

class StoredObjectTest : public ::testing::Test {
 protected:
  using Kind = StoredObject::Kind;

  std::shared_ptr<StoredObject> make(const ObjectLocation& location, Kind kind = Kind::kOwned) {
    return StoredObject::make(store_, objects_, location, kind);
  }
  /// An object whose only copy is lost, and which the lineage makes.
  std::shared_ptr<StoredObject> make_lost(const std::string& text) {
    const ObjectLocation at = store_->put(text);
    store_->lose(at);
    std::shared_ptr<StoredObject> object = make(at);
    object->set_lineage(lineage_);
    return object;
  }
  /// What a task that is run again gives.
  ObjectStatePtr made(const std::string& text) {
    return ObjectState::ready(nullptr, made_value(text));
  }
  ObjectValue made_value(const std::string& text) {
    ObjectValue value;
    value.stored = make(store_->put(text));
    return value;
  }
  static std::string text_of(const Result<Buffer>& bytes) {
    return bytes.ok() ? std::string(bytes->text()) : bytes.status().to_string();
  }

  const std::shared_ptr<test::FakeStore> store_ = std::make_shared<test::FakeStore>();
  const std::shared_ptr<test::FakeRegister> objects_ = std::make_shared<test::FakeRegister>();
  const std::shared_ptr<FakeLineage> lineage_ = std::make_shared<FakeLineage>();
};

TEST_F(StoredObjectTest, AnOwnedOneIsFreedAtItsEnd) {
  const ObjectLocation at = store_->put("abc");
  std::shared_ptr<StoredObject> object = make(at);
  EXPECT_TRUE(object->is_owned());
  EXPECT_EQ(object->location(), at);
  EXPECT_EQ(object->size(), 3u);
  EXPECT_EQ(objects_->present, (std::map<ObjectId, bool>{{at.id, true}}));
  object.reset();
  EXPECT_EQ(store_->freed, std::vector<ObjectLocation>{at});
  EXPECT_TRUE(objects_->present.empty());
  EXPECT_TRUE(store_->borrowed.empty() && store_->unborrowed.empty());
}

TEST_F(StoredObjectTest, TheOwnerHearsOfOneThatWasPassedOn) {
  const ObjectLocation at = store_->put("abc");
  std::shared_ptr<StoredObject> object = make(at, Kind::kPassedOn);
  EXPECT_FALSE(object->is_owned());
  EXPECT_EQ(objects_->present, (std::map<ObjectId, bool>{{at.id, false}}));
  EXPECT_EQ(store_->borrowed, std::vector<ObjectLocation>{at});
  object.reset();
  EXPECT_EQ(store_->unborrowed, std::vector<ObjectLocation>{at});
  EXPECT_TRUE(store_->freed.empty());
}

TEST_F(StoredObjectTest, TheOwnerHasHeardOfOneThatIsConfirmed) {
  const ObjectLocation at = store_->put("abc");
  make(at, Kind::kConfirmed);
  EXPECT_TRUE(store_->borrowed.empty());
  EXPECT_EQ(store_->unborrowed, std::vector<ObjectLocation>{at});
}

TEST_F(StoredObjectTest, ALenderNeedsNoMessage) {
  make(store_->put("abc"), Kind::kBorrowed);
  EXPECT_TRUE(store_->borrowed.empty() && store_->unborrowed.empty() && store_->freed.empty());
  EXPECT_TRUE(objects_->present.empty());
}

TEST_F(StoredObjectTest, AForkedChildFreesNothing) {
  std::shared_ptr<StoredObject> object = make(store_->put("abc"));
  store_->forked = true;
  object.reset();
  EXPECT_TRUE(store_->freed.empty());
  EXPECT_EQ(objects_->present.size(), 1u) << "which is the parent's";
}

TEST_F(StoredObjectTest, OneThatIsLostIsMadeAgainOnce) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  const ObjectLocation lost = object->location();
  lineage_->next = made("xyz");
  EXPECT_EQ(text_of(object->open(Deadline::max())), "xyz");
  EXPECT_EQ(text_of(object->open(Deadline::max())), "xyz");
  EXPECT_EQ(lineage_->asked, std::vector<ObjectLocation>{lost});
  EXPECT_NE(object->location(), lost);
  EXPECT_EQ(object->size(), 3u);
}

TEST_F(StoredObjectTest, ReadersThatDoNotBlockShareItsMaking) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  const ObjectStatePtr coming = std::make_shared<ObjectState>(nullptr);
  lineage_->next = coming;
  std::vector<std::string> read;
  for (int reader = 0; reader < 2; ++reader)
    object->open(Deadline::max(), [&](Result<Buffer> bytes) { read.push_back(text_of(bytes)); });
  EXPECT_TRUE(read.empty());
  EXPECT_EQ(lineage_->asked.size(), 1u);
  coming->fulfil(made_value("xyz"));
  EXPECT_EQ(read, (std::vector<std::string>{"xyz", "xyz"}));
}

TEST_F(StoredObjectTest, OneThatIsLostTwiceIsMadeTwice) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  lineage_->next = made("xyz");
  ASSERT_EQ(text_of(object->open(Deadline::max())), "xyz");
  const ObjectLocation second = object->location();
  store_->lose(second);
  lineage_->next = made("uvw");
  EXPECT_EQ(text_of(object->open(Deadline::max())), "uvw");
  ASSERT_EQ(lineage_->asked.size(), 2u);
  EXPECT_EQ(lineage_->asked[1], second);
}

TEST_F(StoredObjectTest, ALossSaysWhatWasLostAndWhyItIsNotMadeAgain) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  lineage_->next = object_lost("its task may not run again");
  const Status lost = object->open(Deadline::max()).status();
  EXPECT_EQ(lost.code(), ErrorCode::kObjectLost);
  EXPECT_EQ(lost.message(), "object " + object->location().id.hex() +
                                " of 3 bytes, made by task resize, is lost with its copy on node " +
                                object->location().node.short_hex() +
                                " (10.0.0.2:1): its node is gone; it is not made again: its task "
                                "may not run again");
  object->set_lineage(nullptr);
  EXPECT_NE(object->open(Deadline::max()).status().message().find("put by this process"),
            std::string::npos);
}

TEST_F(StoredObjectTest, AnotherSizeIsNotTheSameObject) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  const ObjectLocation lost = object->location();
  lineage_->next = made("longer");
  const Status status = object->open(Deadline::max()).status();
  EXPECT_EQ(status.code(), ErrorCode::kObjectLost);
  EXPECT_NE(status.message().find("another size"), std::string::npos) << status.message();
  EXPECT_EQ(object->location(), lost);
}

TEST_F(StoredObjectTest, WhatIsNoLossIsNotMadeAgain) {
  const std::shared_ptr<StoredObject> object = make_lost("abc");
  lineage_->next = made("xyz");
  store_->failure = deadline_exceeded("slow");
  EXPECT_EQ(object->open(Deadline::max()).status(), deadline_exceeded("slow"));
  Status later;
  object->open(Deadline::max(), [&](const Result<Buffer>& bytes) { later = bytes.status(); });
  EXPECT_EQ(later, deadline_exceeded("slow"));
  EXPECT_TRUE(lineage_->asked.empty());
}

TEST_F(StoredObjectTest, RestoreSaysWhetherItWasMadeAgain) {
  const std::shared_ptr<StoredObject> there = make(store_->put("abc"));
  const std::shared_ptr<StoredObject> lost = make_lost("abc");
  lineage_->next = made("xyz");
  std::vector<bool> made_again;
  const auto note = [&](bool again) { made_again.push_back(again); };
  there->restore(Deadline::max(), note);
  lost->restore(Deadline::max(), note);
  lineage_->next = object_lost("no more");
  store_->lose(lost->location());
  lost->restore(Deadline::max(), note);
  EXPECT_EQ(made_again, (std::vector<bool>{false, true, false}));
}

TEST_F(StoredObjectTest, MovesToItsOwnNode) {
  std::shared_ptr<StoredObject> object = make(store_->put("abc"), Kind::kBorrowed);
  const ObjectLocation before = object->location();
  const ObjectLocation kept = store_->put("abc");
  const auto as_object = [](ObjectValue value) {
    return ObjectState::ready(nullptr, std::move(value));
  };
  Status moved = cancelled("not called back");
  const auto note = [&](Status status) { moved = std::move(status); };
  object->move_to_own_node(Deadline::max(), as_object, note);
  EXPECT_EQ(moved, unavailable("nothing is taken over"));
  EXPECT_EQ(object->location(), before);
  store_->taken_over = kept;
  object->move_to_own_node(Deadline::max(), as_object, note);
  EXPECT_TRUE(moved.ok()) << moved.to_string();
  EXPECT_EQ(object->location(), kept);
  EXPECT_FALSE(object->is_owned());
  store_->lose(before);
  EXPECT_EQ(text_of(object->open(Deadline::max())), "abc");
  object.reset();
  EXPECT_EQ(store_->unborrowed, std::vector<ObjectLocation>{kept});
  EXPECT_TRUE(objects_->present.empty());
}

}  // namespace
}  // namespace runtime
