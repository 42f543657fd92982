#include "runtime/call/death_ref.h"

#include <gtest/gtest.h>

#include "runtime/call/object_ref.h"
#include "tests/runtime/call/query_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

class DeathRefTest : public test::QueryTest {
 protected:
  static Result<ActorDeath> death(const ObjectStatePtr& object) {
    return fetch<ActorDeath>(*object, deadline_after(20s));
  }
  const ActorId actor_ = ActorId::random();
};

TEST_F(DeathRefTest, SettlesWithTheEndForGood) {
  const ObjectStatePtr object = death_of(queries_, actor_);
  EXPECT_EQ(answer_about_actor(actor_state(ActorPhase::kAlive, 3)), (control::WatchActor{actor_}));
  answer_about_actor(deadline_exceeded("nothing has happened"));
  ActorState restarting = actor_state(ActorPhase::kPending, 4, 1);
  restarting.death = {"it crashed", 7, -1, 11, ""};
  EXPECT_EQ(answer_about_actor(restarting).version, 3u);
  EXPECT_EQ(head_.next<control::WatchActor>().version, 4u);
  EXPECT_FALSE(object->is_settled()) << "it will run again";
  ActorState dead = actor_state(ActorPhase::kDead, 5, 2);
  dead.actor = actor_;
  dead.death = {"exited with code 3", 8, 3, 0, ""};
  answer_about_actor(dead);
  const Result<ActorDeath> how = death(object);
  ASSERT_TRUE(how.ok()) << how.status().to_string();
  EXPECT_EQ(how->status, death_status(dead));
  EXPECT_EQ(how->exit_code, 3);
  EXPECT_EQ(how->restarts, 2u);
}

TEST_F(DeathRefTest, AnActorThatTheHeadHasForgottenHasEnded) {
  const ObjectStatePtr object = death_of(queries_, actor_);
  answer_about_actor(not_found("there is no such actor"));
  const Result<ActorDeath> how = death(object);
  ASSERT_TRUE(how.ok()) << how.status().to_string();
  expect_failure(how->status, ErrorCode::kActorDied, {actor_.short_hex()});
  EXPECT_EQ(how->exit_code, -1);
}

TEST_F(DeathRefTest, AFailedQuestionNamesTheActor) {
  const ObjectStatePtr object = death_of(queries_, actor_);
  answer_about_actor(unavailable("the head is gone"));
  expect_failure(death(object).status(), ErrorCode::kUnavailable,
                 {actor_.short_hex(), "the head is gone"});
}

TEST_F(DeathRefTest, NothingIsAskedAgainForAReferenceThatIsGone) {
  ObjectStatePtr dropped = death_of(queries_, ActorId::random());
  (void)head_.next<control::WatchActor>();
  const ObjectStatePtr kept = death_of(queries_, actor_);
  dropped.reset();
  answer_about_actor(actor_state(ActorPhase::kAlive, 1));
  answer_about_actor(actor_state(ActorPhase::kAlive, 2));
  EXPECT_EQ(head_.next<control::WatchActor>(), (control::WatchActor{actor_, 2}));
}

}  // namespace
}  // namespace runtime
