#include "runtime/call/remote_lineage.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/runtime/call/fake_objects.h"

namespace runtime {
namespace {

struct RemoteLineageTest : ::testing::Test {
  EventLoop loop;
  test::FakeObjectContext objects{loop};
  ObjectContextPtr context{
      new ObjectContext{loop, objects.blocked_calls, objects.shut_down, objects.references}};
  RemoteLineage lineage{context, "task resize", "10.0.0.9:1"};
  const ObjectLocation lost = test::some_location();

  /// What the keeper is asked for.
  ObjectStatePtr make_again() {
    Result<ObjectStatePtr> made = lineage.make_again(lost);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? *made : ObjectState::failed(nullptr, made.status());
  }
  void answer(const Result<ObjectLocation>& found) {
    objects.references.remakes.back().done(found);
  }
};

TEST_F(RemoteLineageTest, BorrowsWhatTheKeeperHasMade) {
  const ObjectStatePtr made = make_again();
  ASSERT_EQ(objects.references.remakes.size(), 1u);
  EXPECT_EQ(objects.references.remakes[0].lost, lost);
  EXPECT_EQ(objects.references.remakes[0].keeper, "10.0.0.9:1");
  EXPECT_FALSE(made->is_settled());
  const ObjectLocation found = test::some_location();
  answer(found);
  ASSERT_TRUE(made->is_settled() && made->failure().ok());
  ASSERT_EQ(objects.references.borrowed.size(), 1u);
  EXPECT_TRUE(objects.references.borrowed[0].indirect) << "its owner has to learn of it";
  const StoredObject& stored = *made->value().stored;
  EXPECT_EQ(stored.location(), found);
  EXPECT_EQ(stored.lineage()->maker(), "task resize");
  EXPECT_EQ(stored.lineage()->keeper(), "10.0.0.9:1");
}

TEST_F(RemoteLineageTest, SaysWhyTheKeeperMakesNothing) {
  const ObjectStatePtr made = make_again();
  answer(object_lost("its task may not run again"));
  EXPECT_EQ(made->failure(), object_lost("its task may not run again"));
}

TEST_F(RemoteLineageTest, APlaceThatOnlyTheKeeperReadsIsNoUse) {
  const ObjectStatePtr made = make_again();
  answer(lost);
  EXPECT_EQ(made->failure().code(), ErrorCode::kObjectLost);
  EXPECT_TRUE(objects.references.borrowed.empty());
}

TEST_F(RemoteLineageTest, WithoutAKeeperNothingIsMadeAgain) {
  RemoteLineage kept_nowhere(context, "publish('a')", "");
  EXPECT_EQ(kept_nowhere.make_again(lost).status().code(), ErrorCode::kUnimplemented);
}

TEST_F(RemoteLineageTest, DoesNotKeepItsProcess) {
  const std::weak_ptr<const ObjectContext> weak = context;
  context.reset();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(lineage.make_again(lost).status().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace runtime
