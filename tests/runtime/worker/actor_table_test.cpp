#include "runtime/worker/actor_table.h"

#include "host_fixture.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

using test::CallAnswer;
using test::Pending;
using test::Performer;

/// What a caller heard besides answers.
struct Notices {
  void add(const CallNotice& notice) {
    std::lock_guard lock(mutex);
    heard.push_back(notice);
  }
  bool has(CallNotice::Kind kind, ActorId actor) {
    std::lock_guard lock(mutex);
    return std::ranges::any_of(heard, [&](const CallNotice& notice) {
      return notice.kind == kind && notice.actor == actor;
    });
  }
  std::mutex mutex;
  std::vector<CallNotice> heard;
};

class ActorTableTest : public test::WorkerPartTest {
 protected:
  ActorTableTest() : table_(std::make_shared<ActorTable>(context())) { connect(*caller_); }
  ~ActorTableTest() override {
    stage_.open();
    stop_serving();
    table_->clear();
    on_loop([] {});
  }

  /// As Worker does with a caller's connection.
  void connect(ChannelPair& caller) {
    on_loop([&] { table_->on_channel(caller.far); });
    caller.far->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      table_->on_message(from, std::move(message));
      ++arrived_;
    });
    // A connection may be closed behind the test.
    caller.far->set_on_close(
        [table = std::weak_ptr(table_), raw = caller.far.get()](const Status&) {
          if (const auto there = table.lock()) there->on_channel_closed(raw);
        });
    caller.near->set_handler([this](const std::shared_ptr<Channel>&, const Message& message) {
      Result<CallNotice> notice = decode_notice(message.meta);
      if (message.kind == FrameKind::kCancel && notice.ok()) notices_.add(*notice);
    });
  }
  std::future<Status> begin(std::uint64_t incarnation, bool shared = false) {
    auto built = std::make_shared<std::promise<Status>>();
    ActorSpec spec = test::performer_spec(actor_);
    spec.shared = shared;
    on_loop([&] {
      table_->build(spec, incarnation, [built](Status status) { built->set_value(status); });
    });
    return built->get_future();
  }
  Status build(std::uint64_t incarnation, bool shared = false) {
    return begin(incarnation, shared).get();
  }
  template <class M>
  Pending send(M method, int number, std::uint64_t incarnation = 0) {
    return call(*caller_, {.actor = actor_, .incarnation = incarnation}, method, number);
  }
  void await_arrival() {
    EXPECT_TRUE(support::eventually([&] { return arrived_ == sequence_; }));
  }

  std::shared_ptr<ActorTable> table_;
  Notices notices_;
  std::atomic<std::uint64_t> arrived_ = 0;
};

TEST_F(ActorTableTest, CallsGoToTheActorTheyAreFor) {
  ASSERT_TRUE(build(7).ok());
  EXPECT_EQ(answer(send(&Performer::add, 1, 7)).value, 1);
  const CallAnswer other = answer(call(*caller_, {.actor = ActorId::random()}, &Performer::add, 1));
  EXPECT_EQ(other.status.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(other.gone);
  EXPECT_EQ(stage_.entered().size(), 1u);
}

TEST_F(ActorTableTest, ACallForAnotherStartOfTheActorIsRefused) {
  ASSERT_TRUE(build(7).ok());
  const CallAnswer earlier = answer(send(&Performer::add, 1, 6));
  EXPECT_EQ(earlier.status.code(), ErrorCode::kNotFound);
  EXPECT_TRUE(earlier.gone);
  EXPECT_TRUE(stage_.entered().empty());
}

TEST_F(ActorTableTest, AnActorIsBuiltOnceForEachStart) {
  ASSERT_TRUE(build(7).ok());
  EXPECT_EQ(build(7).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(build(6).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(answer(send(&Performer::add, 1, 7)).value, 1);
}

TEST_F(ActorTableTest, AnActorThatCannotBeBuiltIsTakenOut) {
  stage_.refusal = task_failed("no stage");
  EXPECT_EQ(build(7).code(), ErrorCode::kTaskFailed);
  EXPECT_TRUE(support::eventually([&] { return answer(send(&Performer::add, 1)).gone; }));
  stage_.refusal = {};
  EXPECT_TRUE(build(8).ok());
}

TEST_F(ActorTableTest, TheNextStartWaitsForTheEndOfTheLast) {
  ASSERT_TRUE(build(7).ok());
  Pending held = send(&Performer::hold, 100, 7);
  stage_.await(1);
  std::future<Status> next = begin(8);
  EXPECT_EQ(stage_.made_ever, 1);
  EXPECT_TRUE(answer(send(&Performer::add, 1, 8)).gone) << "not begun yet";
  stage_.open();
  EXPECT_TRUE(next.get().ok());
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_EQ(answer(send(&Performer::add, 1, 8)).value, 1) << "it begins without the old total";
  EXPECT_EQ(stage_.actors, 1);
}

TEST_F(ActorTableTest, ACallThatDoesNotEndHoldsTheNextStartUpForAMoment) {
  executor_->want_threads(2);
  ASSERT_TRUE(build(7, true).ok());
  Pending held = send(&Performer::hold, 100, 7);
  stage_.await(1);
  EXPECT_TRUE(build(8, true).ok());
  EXPECT_EQ(answer(std::move(held)).status.code(), ErrorCode::kActorDied);
  EXPECT_EQ(stage_.actors, 2);
  EXPECT_EQ(answer(send(&Performer::add, 1, 8)).value, 1);
}

TEST_F(ActorTableTest, AStartThatWaitsCanBeGivenUp) {
  ASSERT_TRUE(build(7).ok());
  Pending held = send(&Performer::hold, 100, 7);
  stage_.await(1);
  std::future<Status> next = begin(8);
  on_loop([&] { table_->stop(actor_, 8, {}); });
  EXPECT_EQ(next.get().code(), ErrorCode::kCancelled);
  stage_.open();
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_EQ(stage_.made_ever, 1);
}

TEST_F(ActorTableTest, ACallersEndTellsItsCallsAndDropsThoseInLine) {
  ASSERT_TRUE(build(7).ok());
  {
    ChannelPair other(loop_);
    connect(other);
    Pending running = call(other, {.actor = actor_}, &Performer::await_cancel, 1);
    Pending waits = call(other, {.actor = actor_}, &Performer::add, 2);
    stage_.await(1);
    await_arrival();
  }
  EXPECT_EQ(answer(send(&Performer::add, 3)).value, 3);
  EXPECT_EQ(stage_.entered(), (std::vector<int>{1, 3}));
}

TEST_F(ActorTableTest, ANoticeCancelsACallInLine) {
  ASSERT_TRUE(build(7).ok());
  Pending held = send(&Performer::hold, 100);
  stage_.await(1);
  Pending unwanted = send(&Performer::add, 1);
  send_notice(*caller_->near, {actor_, sequence_, CallNotice::Kind::kCancel}, Flush::kNow);
  EXPECT_EQ(answer(std::move(unwanted)).status.code(), ErrorCode::kCancelled);
  stage_.open();
  EXPECT_EQ(answer(std::move(held)).value, 100);
}

TEST_F(ActorTableTest, CallersHearThatTheActorIsDrainedTheLaterOnesToo) {
  ASSERT_TRUE(build(7).ok());
  std::promise<void> stopped;
  on_loop([&] { table_->stop_after_calls(actor_, 7, [&] { stopped.set_value(); }); });
  stopped.get_future().wait();
  EXPECT_TRUE(
      support::eventually([&] { return notices_.has(CallNotice::Kind::kDrained, actor_); }));
  EXPECT_EQ(stage_.actors, 0);
  {
    std::lock_guard lock(notices_.mutex);
    notices_.heard.clear();
  }
  ChannelPair later(loop_);
  connect(later);
  EXPECT_TRUE(
      support::eventually([&] { return notices_.has(CallNotice::Kind::kDrained, actor_); }));
}

TEST_F(ActorTableTest, TheOneActorOfAProcessIsItsResident) {
  ASSERT_TRUE(build(7).ok());
  EXPECT_EQ(host_process_.resident().actor, actor_);
  EXPECT_EQ(host_process_.resident().incarnation, 7u);
  ASSERT_TRUE(build(8, true).ok());
  EXPECT_TRUE(host_process_.resident().actor.is_none()) << "there may be others";
}

TEST_F(ActorTableTest, TheProcessesEndClosesItsConnections) {
  ASSERT_TRUE(build(7).ok());
  stop_serving();
  table_->clear();
  EXPECT_TRUE(support::eventually([&] { return caller_->near->closed(); }));
  EXPECT_EQ(stage_.actors, 0);
}

}  // namespace
}  // namespace runtime
