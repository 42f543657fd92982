#include "runtime/node/hosted_actors.h"

#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/node/control_inbox.h"
#include "tests/runtime/transport/channel_pair.h"
#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

DeathCause killed_by_oom(std::string tail = "") {
  DeathCause cause;
  cause.text = "killed by SIGKILL";
  cause.pid = 17;
  cause.output_tail = std::move(tail);
  return cause;
}

// The shared actors of one process, whose side of the connection the test plays. Its clock stands
// still.
class HostedActorsTest : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Result<ControlAnswer>>>;

  HostedActorsTest() {
    ActorAddress process;
    process.worker = worker_;
    process.node_address = "10.0.0.1:7000";
    process.pid = 17;
    HostedActors::Callbacks callbacks;
    callbacks.exited = [this](control::ActorsExited exited) {
      exited_.push_back(std::move(exited));
    };
    callbacks.emptied = [this] { ++emptied_; };
    hosted_ = std::make_unique<HostedActors>(loop_, job_, process, std::move(callbacks));
    process_.serve(connection_.far);
  }
  ~HostedActorsTest() override {
    hosted_.reset();
    connection_.close();
    clock_.settle();
  }
  void connect() {
    hosted_->on_connected(connection_.near);
    clock_.settle();
  }
  Answer start(ActorId actor, std::uint64_t incarnation = 1,
               std::chrono::milliseconds time = 1min) {
    ActorSpec spec;
    spec.actor = actor;
    spec.class_name = "Counter";
    auto answer = std::make_shared<std::optional<Result<ControlAnswer>>>();
    hosted_->start(std::move(spec), incarnation, deadline_after(time),
                   [answer](Result<ControlAnswer> said) { *answer = std::move(said); });
    clock_.settle();
    return answer;
  }
  void reply(Result<ControlAnswer> answer = ControlAnswer{}) {
    process_.answer(std::move(answer));
    clock_.settle();
  }
  /// Of a process that has connected.
  void start_serving(ActorId actor, std::uint64_t incarnation = 1) {
    const Answer answer = start(actor, incarnation);
    process_.next<control::BuildActor>();
    reply();
    ASSERT_TRUE(*answer && (*answer)->ok());
  }
  bool stop(ActorId actor, bool drain = false, std::chrono::milliseconds grace = 0ms,
            std::uint64_t incarnation = 1) {
    control::StopActor stop;
    stop.actor = actor;
    stop.incarnation = incarnation;
    stop.drain = drain;
    stop.grace = grace;
    const bool is_one = hosted_->stop(stop);
    clock_.settle();
    return is_one;
  }
  std::vector<control::ActorInstance> serving() const {
    std::vector<control::ActorInstance> actors;
    hosted_->list(actors);
    return actors;
  }
  static Status status(const Answer& answer) {
    return *answer ? (*answer)->status() : internal_error("no answer yet");
  }
  static bool is_open(const Answer& answer) { return !answer->has_value(); }

  // Before the clock, which knows no chance.
  const ActorId a_ = ActorId::random(), b_ = ActorId::random();
  const JobId job_ = JobId::random();
  const WorkerId worker_ = WorkerId::random();
  support::TurnedClock clock_;
  EventLoop loop_;
  ChannelPair connection_{loop_};
  ControlInbox process_;
  std::vector<control::ActorsExited> exited_;
  int emptied_ = 0;
  std::unique_ptr<HostedActors> hosted_;
};

TEST_F(HostedActorsTest, BuildsWhatWaitsOnceTheProcessHasConnected) {
  const Answer answer = start(a_, 3);
  EXPECT_TRUE(hosted_->has(a_));
  EXPECT_TRUE(serving().empty());
  connect();
  const auto build = process_.next<control::BuildActor>();
  EXPECT_EQ(build.spec.actor, a_);
  EXPECT_EQ(build.incarnation, 3u);
  EXPECT_EQ(process_.request().job, job_);
  EXPECT_TRUE(is_open(answer));
  reply();
  ASSERT_TRUE(*answer && (*answer)->ok());
  const auto& address = std::get<ActorAddress>(***answer);
  EXPECT_EQ(address.actor, a_);
  EXPECT_EQ(address.worker, worker_);
  EXPECT_EQ(address.incarnation, 3u);
  EXPECT_EQ(address.class_name, "Counter");
  EXPECT_TRUE(address.shared);
  EXPECT_EQ(serving(), (std::vector<control::ActorInstance>{{a_, 3}}));
}

TEST_F(HostedActorsTest, AConstructorThatFailsLeavesNoActor) {
  connect();
  const Answer answer = start(a_);
  process_.next<control::BuildActor>();
  reply(Status(ErrorCode::kTaskFailed, "it threw"));
  EXPECT_EQ(status(answer), Status(ErrorCode::kTaskFailed, "it threw"));
  EXPECT_EQ(hosted_->size(), 0u);
  EXPECT_EQ(emptied_, 1);
  EXPECT_TRUE(exited_.empty()) << "it has never served";
  EXPECT_EQ(process_.waiting(), 0u);
}

TEST_F(HostedActorsTest, OneThatIsBuiltTooLateIsStopped) {
  connect();
  const Answer answer = start(a_, 1, 5s);
  EXPECT_EQ(process_.request().timeout, 5s);
  process_.next<control::BuildActor>();
  process_.ignore();
  clock_.turn(5s + kControlGrace);
  EXPECT_EQ(status(answer).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(process_.next<control::StopActor>().actor, a_) << "should it be built after all";
  EXPECT_EQ(hosted_->size(), 0u);
}

TEST_F(HostedActorsTest, AStartEndsAtItsDeadlineWithoutAProcess) {
  const Answer late = start(a_, 1, 10s);
  const Answer early = start(b_, 1, 2s);
  clock_.turn(2s);
  EXPECT_EQ(status(early).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(is_open(late));
  EXPECT_EQ(emptied_, 0);
  clock_.turn(8s);
  EXPECT_EQ(status(late).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(emptied_, 1);
  connect();
  EXPECT_EQ(process_.waiting(), 0u);
}

TEST_F(HostedActorsTest, AskedAgainItBuildsOnce) {
  connect();
  const Answer first = start(a_);
  const Answer second = start(a_);
  EXPECT_EQ(process_.waiting(), 1u);
  reply();
  EXPECT_TRUE(is_open(first)) << "of a head that is gone";
  EXPECT_TRUE(status(second).ok());
  const Answer third = start(a_);
  EXPECT_TRUE(status(third).ok()) << "it serves already";
  EXPECT_EQ(process_.waiting(), 0u);
}

TEST_F(HostedActorsTest, ANewerIncarnationTakesThePlaceOfOneThatIsBuilt) {
  connect();
  const Answer first = start(a_, 1);
  const Answer second = start(a_, 2);
  EXPECT_EQ(status(first).code(), ErrorCode::kCancelled);
  reply();
  EXPECT_TRUE(is_open(second)) << "that was the first one's";
  reply();
  EXPECT_TRUE(status(second).ok());
  EXPECT_EQ(serving(), (std::vector<control::ActorInstance>{{a_, 2}}));
}

TEST_F(HostedActorsTest, OneIsKilledAndTheOthersServeOn) {
  connect();
  start_serving(a_);
  start_serving(b_);
  EXPECT_FALSE(stop(ActorId(), false));
  EXPECT_FALSE(stop(a_, false, 0ms, 2)) << "another incarnation";
  EXPECT_TRUE(stop(a_));
  EXPECT_EQ(process_.next<control::StopActor>().actor, a_);
  ASSERT_EQ(exited_.size(), 1u);
  EXPECT_EQ(exited_[0].actors, (std::vector<control::ActorInstance>{{a_, 1}}));
  EXPECT_EQ(exited_[0].cause.text, "killed on request");
  EXPECT_EQ(exited_[0].cause.pid, 17);
  EXPECT_EQ(serving(), (std::vector<control::ActorInstance>{{b_, 1}}));
  EXPECT_EQ(emptied_, 0);
}

TEST_F(HostedActorsTest, AStartIsCancelled) {
  const Answer answer = start(a_);
  EXPECT_TRUE(stop(a_));
  EXPECT_EQ(status(answer), cancelled("killed on request"));
  EXPECT_TRUE(exited_.empty());
  EXPECT_EQ(emptied_, 1);
}

TEST_F(HostedActorsTest, ADrainedActorServesWhatWaitsFirst) {
  connect();
  start_serving(a_);
  EXPECT_TRUE(stop(a_, true, 10s));
  EXPECT_EQ(process_.next<control::DrainActor>().actor, a_);
  clock_.turn(9s);
  EXPECT_TRUE(exited_.empty());
  reply();
  ASSERT_EQ(exited_.size(), 1u);
  EXPECT_EQ(exited_[0].cause.text, "killed on request");
  EXPECT_EQ(process_.waiting(), 0u) << "it has ended by itself";
  EXPECT_EQ(emptied_, 1);
}

TEST_F(HostedActorsTest, ADrainThatTakesTooLongIsCutShort) {
  connect();
  start_serving(a_);
  EXPECT_TRUE(stop(a_, true, 10s));
  process_.next<control::DrainActor>();
  process_.ignore();
  EXPECT_TRUE(stop(a_, true, 20s)) << "later counts for nothing";
  EXPECT_TRUE(stop(a_, true, 5s));
  EXPECT_EQ(process_.waiting(), 0u) << "it is asked once";
  clock_.turn(5s - 1ms);
  EXPECT_TRUE(exited_.empty());
  clock_.turn(1ms);
  EXPECT_EQ(process_.next<control::StopActor>().actor, a_);
  ASSERT_EQ(exited_.size(), 1u);
  EXPECT_EQ(exited_[0].cause.text,
            "killed on request; it had not served its calls in time and was killed");
}

TEST_F(HostedActorsTest, AllEndWithTheProcess) {
  connect();
  start_serving(a_);
  const Answer built = start(b_);
  connection_.far->close(cancelled("died"));
  clock_.settle();
  EXPECT_TRUE(is_open(built)) << "how the process ended says more";
  hosted_->on_exit(killed_by_oom("out of memory"));
  EXPECT_EQ(status(built).code(), ErrorCode::kActorDied);
  EXPECT_NE(status(built).message().find("(pid 17"), std::string::npos);
  EXPECT_TRUE(status(built).message().ends_with(
      "killed by SIGKILL, a process of 2 shared actors\nout of memory"))
      << status(built).message();
  ASSERT_EQ(exited_.size(), 1u);
  EXPECT_EQ(exited_[0].actors, (std::vector<control::ActorInstance>{{a_, 1}}));
  EXPECT_EQ(exited_[0].cause.output_tail, "out of memory");
  EXPECT_EQ(hosted_->size(), 0u);
  EXPECT_EQ(emptied_, 0) << "there is no process to end";
}

TEST_F(HostedActorsTest, ALongTailIsNotCopiedForMany) {
  connect();
  start_serving(a_);
  start_serving(b_);
  hosted_->on_exit(killed_by_oom(std::string((1 << 19) + 1, 'x')));
  ASSERT_EQ(exited_.size(), 1u);
  EXPECT_EQ(exited_[0].actors.size(), 2u);
  EXPECT_EQ(exited_[0].cause.output_tail, "");
}

TEST_F(HostedActorsTest, HandsOverWhatWaitsForAProcessThatHasEnded) {
  const Answer answer = start(a_, 4, 5s);
  auto unsent = hosted_->take_unsent();
  ASSERT_EQ(unsent.size(), 1u);
  EXPECT_EQ(unsent[0].spec.actor, a_);
  EXPECT_EQ(unsent[0].incarnation, 4u);
  clock_.turn(10s);
  EXPECT_TRUE(is_open(answer));
  unsent[0].answer(ControlAnswer{});
  EXPECT_TRUE(status(answer).ok());
  EXPECT_EQ(hosted_->size(), 0u);
  connect();
  start(a_);
  EXPECT_TRUE(hosted_->take_unsent().empty()) << "it was sent";
}

TEST_F(HostedActorsTest, MayGoWithAnswersUnderWay) {
  connect();
  start_serving(b_);
  const Answer answer = start(a_);
  hosted_.reset();
  reply();
  EXPECT_TRUE(is_open(answer));
}

}  // namespace
}  // namespace runtime
