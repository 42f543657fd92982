#include "runtime/node/actor_starts.h"

#include <gtest/gtest.h>

#include "runtime/transport/blocking.h"

namespace runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ActorStartsTest : public ::testing::Test {
 protected:
  ActorStartsTest() {
    ActorStarts::Callbacks callbacks;
    callbacks.find_program = [this](const DriverInfo&, const std::string&, Deadline,
                                    ProgramFiles::Found found) {
      found_ = std::move(found);
      troubles_.push_back(starts_->trouble(actor_));
      EXPECT_EQ(starts_->trouble(ActorId::random()), "");
      if (program_) found_(*program_);
    };
    callbacks.begin = [this](const ActorStarts::StartPtr& start, const LocalProgram&) {
      if (failures_-- > 0) return resource_exhausted("no room");
      std::exchange(start->answer, nullptr)(ControlAnswer{});
      return Status();
    };
    starts_ = std::make_unique<ActorStarts>(
        loop_, ActorStartsOptions{.patience = seconds(20), .pause_first = milliseconds(1)},
        std::move(callbacks));
  }
  ~ActorStartsTest() override {
    on_loop(loop_, [&] {
      starts_.reset();
      return 0;
    });
  }
  control::StartActor request() {
    control::StartActor start;
    start.spec.actor = actor_;
    start.incarnation = 1;
    return start;
  }
  void add() {
    on_loop(loop_, [&] {
      starts_->add(job_, request(), deadline_after(seconds(30)), answerer());
      return 0;
    });
  }
  ControlAnswerer answerer() {
    return [this](Result<ControlAnswer> answer) {
      answers_.push_back(answer.status());
      answered_.set();
    };
  }
  Status wait() {
    EXPECT_TRUE(loop_.run_until(answered_, deadline_after(seconds(30))));
    return answers_.empty() ? Status() : answers_.back();
  }

  EventLoop loop_;
  Event answered_{loop_};
  const ActorId actor_ = ActorId::random();
  const JobId job_ = JobId::random();
  std::optional<Result<LocalProgram>> program_ = Result<LocalProgram>(LocalProgram{});
  ProgramFiles::Found found_;
  int failures_ = 0;
  std::vector<std::string> troubles_;  // before each try
  std::vector<Status> answers_;
  std::unique_ptr<ActorStarts> starts_;
};

TEST_F(ActorStartsTest, TriesAgainWhatTheMachineLacksForAMoment) {
  failures_ = 3;
  add();
  EXPECT_TRUE(wait().ok());
  EXPECT_EQ(answers_.size(), 1u);
  EXPECT_EQ(starts_->size(), 0u);
}

TEST_F(ActorStartsTest, SaysWhatAStartLacksUntilItBegins) {
  failures_ = 2;
  add();
  EXPECT_TRUE(wait().ok());
  EXPECT_EQ(troubles_, (std::vector<std::string>{"", "no room (tried 1 time so far)",
                                                 "no room (tried 2 times so far)"}));
  on_loop(loop_, [&] {
    EXPECT_EQ(starts_->trouble(actor_), "") << "it has begun";
    return 0;
  });
}

TEST_F(ActorStartsTest, GivesUpOnWhatDoesNotPass) {
  program_ = Result<LocalProgram>(not_found("the program is gone"));
  add();
  EXPECT_EQ(wait().code(), ErrorCode::kNotFound);
  EXPECT_EQ(starts_->size(), 0u);
}

TEST_F(ActorStartsTest, TriesNothingAgainOnceStopped) {
  failures_ = 1;
  starts_->stop();
  add();
  EXPECT_EQ(wait().message(), "no room");
}

TEST_F(ActorStartsTest, AnswersTheLastThatAskedForAnIncarnation) {
  program_.reset();
  add();
  on_loop(loop_, [&] {
    ControlAnswerer other = [this](const Result<ControlAnswer>& answer) {
      EXPECT_TRUE(answer.ok());
      answered_.set();
    };
    EXPECT_TRUE(starts_->join(request(), other));
    control::StartActor later = request();
    later.incarnation = 2;
    EXPECT_FALSE(starts_->join(later, other));
    found_(LocalProgram{});
    return 0;
  });
  (void)wait();
  EXPECT_TRUE(answers_.empty()) << "the first one is not answered";
}

TEST_F(ActorStartsTest, BeginsNothingThatWasCancelled) {
  program_.reset();
  add();
  on_loop(loop_, [&] {
    starts_->cancel(actor_, 2, "another incarnation");
    starts_->cancel_job(job_);
    found_(LocalProgram{});
    return 0;
  });
  EXPECT_EQ(wait().message(), "its job ended");
  EXPECT_EQ(starts_->size(), 0u);
  EXPECT_EQ(answers_.size(), 1u);
}

}  // namespace
}  // namespace runtime
