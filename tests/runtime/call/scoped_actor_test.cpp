#include "runtime/call/scoped_actor.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/runtime/call/caller_fixture.h"

namespace runtime {
namespace {

class ScopedActorTest : public test::CallerTest {
 protected:
  using Scoped = ScopedActor<test::Adder>;

  /// One that notes its end.
  Scoped spawn(int& ends) {
    return Scoped(ActorHandle<test::Adder>(client(address())), [&ends] { ++ends; });
  }
};

TEST_F(ScopedActorTest, EndsItsActorWithItsScopeOnce) {
  int ends = 0;
  {
    Scoped actor = spawn(ends);
    EXPECT_EQ(actor->id(), actor_);
    EXPECT_EQ((*actor).id(), actor.handle().id());
    const Scoped moved = std::move(actor);
    EXPECT_FALSE(actor.handle().is_valid());
    EXPECT_EQ(moved->id(), actor_);
    EXPECT_EQ(ends, 0);
  }
  EXPECT_EQ(ends, 1);
}

TEST_F(ScopedActorTest, AnotherInItsPlaceEndsIt) {
  int first_ends = 0, second_ends = 0;
  {
    Scoped actor = spawn(first_ends);
    actor = spawn(second_ends);
    EXPECT_EQ(first_ends, 1);
    EXPECT_EQ(second_ends, 0);
    Scoped& same = actor;
    actor = std::move(same);
    EXPECT_EQ(second_ends, 0);
    EXPECT_TRUE(actor.handle().is_valid());
  }
  EXPECT_EQ(first_ends, 1);
  EXPECT_EQ(second_ends, 1);
}

TEST_F(ScopedActorTest, OneThatIsReleasedGoesOn) {
  int ends = 0;
  ActorHandle<test::Adder> kept;
  {
    Scoped actor = spawn(ends);
    kept = actor.release();
    EXPECT_FALSE(actor.handle().is_valid());
  }
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(kept.id(), actor_);
}

}  // namespace
}  // namespace runtime
