#include "runtime/head/actor_waiters.h"

#include "parts_fixture.h"
#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;
using support::expect_failure;

class ActorWaitersTest : public PartTest {
 protected:
  ActorWaitersTest() : job_(add_job(add_node(4))) {}

  Answer for_address(const ActorSpec& spec, std::chrono::milliseconds time = 10s) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    waiters_.add_for_address(spec.actor, time_ + time, taker(answer));
    return answer;
  }
  Answer for_change(const ActorSpec& spec, std::chrono::milliseconds time = 10s) {
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    waiters_.add_for_change(spec.actor, time_ + time, taker(answer));
    return answer;
  }
  /// "" until it is answered, then the actor's class, or "late".
  std::shared_ptr<std::string> for_end(const ActorSpec& spec,
                                       std::chrono::milliseconds time = 10s) {
    auto answer = std::make_shared<std::string>();
    waiters_.add_for_end(spec.actor, time_ + time, [answer](const ActorRecord* ended) {
      *answer += ended ? ended->spec.class_name : "late";
    });
    return answer;
  }
  static ControlAnswerer taker(const Answer& answer) {
    return [answer](Result<ControlAnswer> result) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      answer->emplace(std::move(result));
    };
  }
  void die(const ActorSpec& spec) {
    context_.commit(command::ActorDead{spec.actor, {"it crashed", 100, -1, 9, ""}});
  }

  const JobId job_;
  ActorWaiters waiters_{context_};
};

TEST_F(ActorWaitersTest, AnAddressIsAnsweredAtOnceIfItIsKnown) {
  const ActorSpec living = add_living(job_), dead = add_actor(job_);
  die(dead);
  const Answer address = for_address(living);
  ASSERT_TRUE(status(address).ok());
  EXPECT_EQ(std::get<ActorAddress>(***address), record(living).address);
  expect_failure(status(for_address(dead)), ErrorCode::kActorDied, {"it crashed"});
  EXPECT_EQ(waiters_.next_tick(), Deadline::max());
}

TEST_F(ActorWaitersTest, AnAddressThatWillNotComeIsAnsweredWithTheReason) {
  const ActorSpec one = add_actor(job_), other = add_actor(job_);
  const Answer first = for_address(one), second = for_address(other);
  waiters_.never_alive(one.actor, task_failed("threw: no"));
  EXPECT_EQ(status(first), task_failed("threw: no"));
  make_alive(other);
  waiters_.alive(record(other).address);
  ASSERT_TRUE(status(second).ok());
  EXPECT_EQ(std::get<ActorAddress>(***second).actor, other.actor);
}

TEST_F(ActorWaitersTest, EndsAndChangesAreOfTheActorThatIsAskedAbout) {
  const ActorSpec one = add_living(job_), other = add_living(job_);
  const auto end = for_end(one), other_end = for_end(other);
  const Answer change = for_change(one), other_change = for_change(other);
  die(one);
  waiters_.incarnation_ended(record(one));
  waiters_.changed(one.actor);
  EXPECT_EQ(*end, "Counter");
  ASSERT_TRUE(status(change).ok());
  EXPECT_EQ(std::get<ActorState>(***change).phase, ActorPhase::kDead);
  waiters_.changed(one.actor);
  EXPECT_EQ(*other_end, "");
  EXPECT_FALSE(other_change->has_value());
}

TEST_F(ActorWaitersTest, AtTheDeadlineTheyHearWhyNothingHasHappened) {
  const ActorSpec spec = add_actor(job_);
  context_.commit(command::ActorWaits{spec.actor, "no node has CPU 9"});
  const Answer address = for_address(spec, 3s), change = for_change(spec, 2s);
  const auto end = for_end(spec, 1s);
  EXPECT_EQ(waiters_.next_tick(), time_ + 1s);
  waiters_.tick(time_ + 1s);
  EXPECT_EQ(*end, "late");
  EXPECT_FALSE(change->has_value());
  waiters_.tick(time_ + 3s);
  expect_failure(status(change), ErrorCode::kDeadlineExceeded, {spec.actor.short_hex()});
  expect_failure(status(address), ErrorCode::kDeadlineExceeded,
                 {spec.actor.short_hex(), "pending", "no node has CPU 9"});
  EXPECT_EQ(waiters_.next_tick(), Deadline::max());
}

TEST_F(ActorWaitersTest, OneThatIsForgottenMeanwhileIsGone) {
  const ActorSpec spec = add_actor(job_);
  const Answer address = for_address(spec);
  die(spec);
  context_.commit(command::ForgetDead{1});
  waiters_.tick(time_ + 10s);
  expect_failure(status(address), ErrorCode::kDeadlineExceeded, {"gone"});
}

}  // namespace
}  // namespace runtime
