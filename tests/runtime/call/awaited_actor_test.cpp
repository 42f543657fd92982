// Actors on their way, whether this process makes them or another does. What those that wait for
// them tell, and what becomes of a cycle of waits.
#include "runtime/call/awaited_actor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/call/actor_creation.h"
#include "runtime/call/actor_options.h"
#include "runtime/call/call_wire.h"
#include "tests/runtime/control/fake_node.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class AwaitedActorTest : public ::testing::Test {
 protected:
  AwaitedActorTest() {
    spec_.actor = ActorId::random();
    spec_.class_name = "Counter";
    spec_.name = "total";
    spec_.name_space = "team";
  }
  ~AwaitedActorTest() override { client_.reset(); }

  /// That another process makes.
  std::shared_ptr<AwaitedActor> awaited() {
    auto actor = std::make_shared<AwaitedActor>(
        *client_, built_, "Counter \"total\"",
        control::ConstructorAwaited{{}, spec_.name, spec_.name_space}, false);
    built_->set_producer(actor);
    return actor;
  }
  /// That this process makes.
  std::shared_ptr<ActorCreation> creation(std::chrono::milliseconds timeout = 1min) {
    return ActorCreation::of(*client_, built_, spec_, timeout);
  }
  static std::vector<WaitStep> waits() { return {{7, 1, "A 12: f", "Counter: (constructor)"}}; }
  /// What the process that builds the actor is told; it waits for it.
  control::ConstructorAwaited told() {
    auto notice = node_.next<control::ConstructorAwaited>();
    node_.answer<control::ConstructorAwaited>();
    return notice;
  }

  FakeNode node_;
  EventLoop loop_;
  std::unique_ptr<NodeClient> client_ = node_.connect(loop_, Role::kDriver);
  ActorSpec spec_;
  const ObjectStatePtr built_ = std::make_shared<ObjectState>(nullptr);
};

TEST_F(AwaitedActorTest, PassesWaitsOnToWhoBuildsIt) {
  const auto actor = awaited();
  EXPECT_EQ(actor->describe(), "Counter \"total\": (constructor)");
  actor->tell(waits());
  const auto notice = told();
  EXPECT_TRUE(notice.actor.is_none());
  EXPECT_EQ(notice.name, "total");
  EXPECT_EQ(notice.name_space, "team");
  const Result<CallNotice> decoded = decode_notice(Buffer::copy_of(notice.notice));
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_EQ(decoded->kind, CallNotice::Kind::kWaits);
  EXPECT_EQ(decoded->waits, waits());
}

TEST_F(AwaitedActorTest, OneThatIsThereIsWaitedForNoMore) {
  const auto actor = awaited();
  built_->fulfil({});
  actor->tell(waits());
  AwaitedActor::tell_builder(*client_, {spec_.actor}, waits());
  EXPECT_EQ(told().actor, spec_.actor) << "the first that comes is the second that was told";
}

TEST_F(AwaitedActorTest, ItsFailureNamesTheCycle) {
  const auto actor = awaited();
  EXPECT_EQ(actor->with_cycle(deadline_exceeded("late")), deadline_exceeded("late"));
  actor->on_cycle(actor, "A waits for B", false);
  EXPECT_FALSE(built_->is_settled());
  EXPECT_EQ(actor->with_cycle(deadline_exceeded("late")), deadline_exceeded("late: A waits for B"));
}

TEST_F(AwaitedActorTest, ACycleFailsTheWaitAndEndsNoActorOfOthers) {
  const auto actor = awaited();
  actor->on_cycle(actor, "A waits for B", true);
  EXPECT_EQ(built_->failure(), invalid_argument("Counter \"total\": (constructor): A waits for B"));
  EXPECT_TRUE(actor->cancel(actor, CancelMode::kForce).ok());
  AwaitedActor::tell_builder(*client_, {spec_.actor}, waits());
  (void)told();
  EXPECT_EQ(node_.waiting<control::KillActor>(), 0u);
}

// -- Of this process

TEST_F(AwaitedActorTest, ACreationIsWhatMakesTheActor) {
  auto made = creation();
  EXPECT_EQ(built_->producer(), made);
  EXPECT_EQ(made->describe(), "Counter " + spec_.actor.short_hex() + ": (constructor)");
  made->tell(waits());
  const auto notice = told();
  EXPECT_EQ(notice.actor, spec_.actor);
  EXPECT_EQ(notice.name, "") << "its id is enough";
  made.reset();
  EXPECT_EQ(built_->producer(), nullptr) << "its process keeps it, nothing else does";
}

TEST_F(AwaitedActorTest, OneThatMayExistIsFoundByItsName) {
  spec_.get_if_exists = true;
  creation()->tell(waits());
  const auto notice = told();
  EXPECT_EQ(notice.name, "total");
  EXPECT_EQ(notice.name_space, "team");
}

TEST_F(AwaitedActorTest, ALimitThatTheProgramChoseIsItsOwn) {
  const auto usual = ActorOptions{}.create_timeout;
  EXPECT_FALSE(creation(usual)->has_own_limit());
  EXPECT_TRUE(creation(usual - 1ms)->has_own_limit());
}

TEST_F(AwaitedActorTest, ACancelledCreationEndsItsActorForGood) {
  const auto made = creation();
  EXPECT_TRUE(made->cancel(made, CancelMode::kCooperative).ok());
  const auto kill = node_.next<control::KillActor>();
  EXPECT_EQ(kill.actor, spec_.actor);
  EXPECT_FALSE(kill.may_restart);
  node_.answer<control::KillActor>(not_found("no such actor"));
  EXPECT_FALSE(built_->is_settled()) << "the answer to its creation says how it ended";
}

TEST_F(AwaitedActorTest, ACycleEndsTheActorThatThisProcessMakes) {
  const auto made = creation();
  made->on_cycle(made, "A waits for B", true);
  EXPECT_EQ(built_->failure().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(node_.next<control::KillActor>().actor, spec_.actor);
}

}  // namespace
}  // namespace runtime
