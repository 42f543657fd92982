#include "runtime/worker/actor_host.h"

#include "host_fixture.h"
#include "tests/support/eventually.h"

namespace runtime {
namespace {

using test::CallAnswer;
using test::Pending;
using test::Performer;

class ActorHostTest : public test::WorkerPartTest {
 protected:
  ~ActorHostTest() override { stage_.open(); }

  /// An actor whose calls are those of caller_.
  void make_host(ActorHostOptions options = {}) {
    host_ = std::make_shared<ActorHost>(context(options), actor_, 1, false);
    caller_->far->set_handler([this](const std::shared_ptr<Channel>& from, Message message) {
      auto job = std::make_unique<ActorJob>();
      const Status decoded = decode_call(
          message.meta, message.payload.first(), objects_.get(),
          [](const CallRequest&) { return nullptr; }, &job->call, &job->arguments);
      EXPECT_TRUE(decoded.ok());
      job->channel = from;
      job->request.kind = message.kind;
      job->request.id = message.id;
      job->deadline = deadline_;
      host_->push(std::move(job));
      ++arrived_;
    });
  }
  Status build() {
    std::promise<Status> built;
    host_->build(test::performer_spec(actor_), [&](Status status) { built.set_value(status); });
    return built.get_future().get();
  }
  template <class M>
  Pending send(M method, int number) {
    return call(*caller_, {.actor = actor_}, method, number);
  }
  /// Calls hold(), and waits until it runs.
  Pending hold() {
    Pending held = send(&Performer::hold, 100);
    stage_.await(stage_.entered().size() + 1);
    return held;
  }
  /// Waits until the actor has all calls that were sent.
  void await_arrival() {
    EXPECT_TRUE(support::eventually([&] { return arrived_ == sequence_; }));
  }

  Deadline deadline_ = deadline_after(std::chrono::seconds(60));  // of the calls
  std::shared_ptr<ActorHost> host_;
  std::atomic<std::uint64_t> arrived_ = 0;
};

TEST_F(ActorHostTest, CallsRunInTheirOrder) {
  make_host();
  ASSERT_TRUE(build().ok());
  std::vector<Pending> calls;
  for (int number = 1; number <= 4; ++number) calls.push_back(send(&Performer::add, number));
  for (const int total : {1, 3, 6, 10}) {
    const CallAnswer answered = answer(std::move(calls.front()));
    EXPECT_TRUE(answered.status.ok()) << answered.status.to_string();
    EXPECT_EQ(answered.value, total);
    calls.erase(calls.begin());
  }
  EXPECT_EQ(host_->class_name(), "Performer");
}

TEST_F(ActorHostTest, AConstructorThatFailsIsToldToWhoBuildsAndToCallers) {
  make_host();
  stage_.refusal = task_failed("no stage");
  EXPECT_EQ(build(), task_failed("Performer: no stage"));
  const CallAnswer answered = answer(send(&Performer::add, 1));
  EXPECT_EQ(answered.status, unavailable("the actor is not built"));
  EXPECT_TRUE(stage_.entered().empty());
}

TEST_F(ActorHostTest, AMethodThatThrowsFailsItsCallAlone) {
  make_host();
  ASSERT_TRUE(build().ok());
  const CallAnswer failed = answer(send(&Performer::fail, 1));
  EXPECT_EQ(failed.status.code(), ErrorCode::kTaskFailed);
  EXPECT_NE(failed.status.message().find("the performer fell"), std::string::npos);
  EXPECT_EQ(answer(send(&Performer::add, 2)).value, 2);
}

TEST_F(ActorHostTest, ACallWhoseTimeIsUpInLineDoesNotRun) {
  make_host();
  ASSERT_TRUE(build().ok());
  deadline_ = Deadline::min();
  EXPECT_EQ(answer(send(&Performer::add, 1)).status.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(stage_.entered().empty());
}

TEST_F(ActorHostTest, ACallThatIsCancelledInLineNeverRuns) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending held = hold();
  Pending unwanted = send(&Performer::add, 1);
  const std::uint64_t sequence = sequence_;
  Pending last = send(&Performer::add, 2);
  await_arrival();
  host_->cancel(caller_->far.get(), sequence, CancelMode::kCooperative);
  EXPECT_EQ(answer(std::move(unwanted)).status.code(), ErrorCode::kCancelled);
  stage_.open();
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_EQ(answer(std::move(last)).value, 102);
  EXPECT_EQ(stage_.entered(), (std::vector<int>{100, 2}));
}

TEST_F(ActorHostTest, ACallThatRunsHearsThatItIsCancelled) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending running = send(&Performer::await_cancel, 1);
  stage_.await(1);
  host_->cancel(caller_->far.get(), sequence_, CancelMode::kCooperative);
  EXPECT_EQ(answer(std::move(running)).status.code(), ErrorCode::kCancelled);
}

TEST_F(ActorHostTest, ALineThatIsFullRefusesFurtherCalls) {
  make_host({.calls_max = 1});
  ASSERT_TRUE(build().ok());
  Pending held = hold();
  Pending waits = send(&Performer::add, 1);
  const CallAnswer refused = answer(send(&Performer::add, 2));
  EXPECT_EQ(refused.status, resource_exhausted("1 calls wait already"));
  EXPECT_FALSE(refused.gone);
  stage_.open();
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_EQ(answer(std::move(waits)).value, 101);
}

TEST_F(ActorHostTest, AnActorThatIsStoppedAnswersWhatWaitsAndIsDestroyed) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending held = hold();
  Pending waits = send(&Performer::add, 1);
  await_arrival();
  std::promise<int> left;  // actors, once it is stopped
  host_->stop([&] { left.set_value(stage_.actors); });
  const CallAnswer late = answer(send(&Performer::add, 2));
  EXPECT_EQ(late.status, not_found("the actor has ended"));
  EXPECT_TRUE(late.gone);
  EXPECT_EQ(stage_.actors, 1) << "a call runs";
  stage_.open();
  EXPECT_EQ(left.get_future().get(), 0);
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_TRUE(answer(std::move(waits)).gone);
  EXPECT_EQ(stage_.entered(), std::vector<int>{100});
}

TEST_F(ActorHostTest, AStopTellsTheCallThatRuns) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending running = send(&Performer::await_cancel, 1);
  stage_.await(1);
  std::promise<void> stopped;
  host_->stop([&] { stopped.set_value(); });
  EXPECT_EQ(answer(std::move(running)).status.code(), ErrorCode::kCancelled);
  stopped.get_future().wait();
  EXPECT_EQ(stage_.actors, 0);
}

TEST_F(ActorHostTest, AnActorThatStopsAfterItsCallsServesItsLineAndNoMore) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending held = hold();
  Pending waits = send(&Performer::add, 1);
  await_arrival();
  std::promise<void> stopped;
  host_->stop_after_calls([&] { stopped.set_value(); });
  EXPECT_TRUE(answer(send(&Performer::add, 2)).gone);
  stage_.open();
  EXPECT_EQ(answer(std::move(held)).value, 100);
  EXPECT_EQ(answer(std::move(waits)).value, 101);
  stopped.get_future().wait();
  EXPECT_EQ(stage_.actors, 0);
}

TEST_F(ActorHostTest, ACallThatDoesNotEndIsAnsweredInItsPlaceOnce) {
  make_host();
  ASSERT_TRUE(build().ok());
  Pending held = hold();
  std::promise<void> stopped;
  host_->stop([&] { stopped.set_value(); });
  host_->abandon({caller_->far});
  EXPECT_EQ(answer(std::move(held)).status.code(), ErrorCode::kActorDied);
  caller_->near->set_on_late_reply(
      [](const std::shared_ptr<Channel>&, const Message&) { ADD_FAILURE() << "answered twice"; });
  stage_.open();
  stopped.get_future().wait();
  EXPECT_TRUE(answer(send(&Performer::add, 1)).gone);
}

TEST_F(ActorHostTest, MethodsRunAtOnceWhereTheActorMayHaveSeveral) {
  make_host();
  std::promise<Status> built;
  host_->build(test::performer_spec(actor_, {.max_concurrency = 2}),
               [&](Status status) { built.set_value(status); });
  ASSERT_TRUE(built.get_future().get().ok());
  Pending first = send(&Performer::pass, 1);
  Pending second = send(&Performer::pass, 2);
  Pending third = send(&Performer::pass, 3);
  await_arrival();
  stage_.await(2);
  EXPECT_EQ(stage_.entered().size(), 2u);
  stage_.open();
  for (Pending* call : {&first, &second, &third}) EXPECT_TRUE(answer(std::move(*call)).status.ok());
}

TEST_F(ActorHostTest, AMethodThatTheClassHasNotIsRefused) {
  make_host();
  ASSERT_TRUE(build().ok());
  const CallAnswer refused = answer(send(&Performer::unregistered, 1));
  EXPECT_EQ(refused.status.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.status.message().find("class Performer"), std::string::npos);
}

}  // namespace
}  // namespace runtime
