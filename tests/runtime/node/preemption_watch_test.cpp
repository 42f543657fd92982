// Looks at a source of preemption notices, whose answers and clock are the test's.
#include "runtime/node/preemption_watch.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "tests/support/turned_clock.h"

namespace runtime {
namespace {

using namespace std::chrono_literals;

class PreemptionWatchTest : public ::testing::Test {
 protected:
  /// Keeps the questions, for the test to answer.
  class ManualSource final : public PreemptionSource {
   public:
    struct Question {
      Deadline deadline;
      Done done;
    };
    explicit ManualSource(std::deque<Question>& questions) : questions_(questions) {}
    std::string name() const override { return "the test"; }
    void ask(Deadline deadline, Done done) override {
      questions_.push_back({deadline, std::move(done)});
    }

   private:
    std::deque<Question>& questions_;
  };

  PreemptionWatchTest() {
    watch_ = std::make_unique<PreemptionWatch>(
        loop_, std::make_unique<ManualSource>(questions_), kPoll, kTimeout,
        [this](const PreemptionNotice& notice, UniqueFunction<void(bool)> answer) {
          notices_.push_back(notice);
          taken_ = std::move(answer);
        });
  }
  void say(Result<PreemptionAnswer> answer) {
    ASSERT_FALSE(questions_.empty()) << "nothing was asked";
    auto done = std::move(questions_.front().done);
    questions_.pop_front();
    done(std::move(answer));
    clock_.settle();
  }
  void say_all_is_well() { say(PreemptionAnswer()); }
  /// Whether the source is asked when it is time, and not before.
  bool asks_again() {
    clock_.turn(kPoll - 1ms);
    EXPECT_TRUE(questions_.empty()) << "too early";
    clock_.turn(1ms);
    return !questions_.empty();
  }

  static constexpr auto kPoll = 1000ms, kTimeout = 2000ms;
  const PreemptionNotice notice_{"preemption: the test", 25s};
  support::TurnedClock clock_;
  EventLoop loop_;
  std::deque<ManualSource::Question> questions_;
  std::vector<PreemptionNotice> notices_;
  UniqueFunction<void(bool)> taken_;
  std::unique_ptr<PreemptionWatch> watch_;
};

TEST_F(PreemptionWatchTest, LooksAgainAndAgainWhileAllIsWell) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(questions_.size(), 1u);
    EXPECT_EQ(questions_.front().deadline, steady_now() + kTimeout);
    say_all_is_well();
    EXPECT_TRUE(asks_again());
  }
  EXPECT_TRUE(notices_.empty());
}

TEST_F(PreemptionWatchTest, AsksOneQuestionAtATime) {
  clock_.turn(10 * kPoll);
  EXPECT_EQ(questions_.size(), 1u) << "the source has not answered yet";
}

TEST_F(PreemptionWatchTest, ANoticeThatIsTakenCareOfEndsTheWatch) {
  say(PreemptionAnswer(notice_));
  EXPECT_EQ(notices_, std::vector{notice_});
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(questions_.empty()) << "it is being taken care of";
  taken_(true);
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(questions_.empty());
}

TEST_F(PreemptionWatchTest, ANoticeThatCouldNotBeHandledIsGivenAgain) {
  say(PreemptionAnswer(notice_));
  taken_(false);
  ASSERT_TRUE(asks_again());
  say(PreemptionAnswer(notice_));
  EXPECT_EQ(notices_.size(), 2u);
}

TEST_F(PreemptionWatchTest, ASourceThatFailsIsAskedAgain) {
  for (int i = 0; i < 3; ++i) {
    say(unavailable("no route to host"));
    EXPECT_TRUE(asks_again());
  }
  EXPECT_TRUE(notices_.empty()) << "a failure is no notice";
  say(PreemptionAnswer(notice_));
  EXPECT_EQ(notices_.size(), 1u);
}

TEST_F(PreemptionWatchTest, AfterStopNothingIsAskedNorSaid) {
  watch_->stop();
  say(PreemptionAnswer(notice_));
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(notices_.empty());
  EXPECT_TRUE(questions_.empty());
}

TEST_F(PreemptionWatchTest, StopEndsThePauseBetweenTwoLooks) {
  say_all_is_well();
  watch_->stop();
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(questions_.empty());
}

TEST_F(PreemptionWatchTest, ANoticeThatIsHandledAfterStopChangesNothing) {
  say(PreemptionAnswer(notice_));
  watch_->stop();
  taken_(false);
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(questions_.empty());
}

TEST_F(PreemptionWatchTest, AnswersMayComeAfterItsEnd) {
  say(PreemptionAnswer(notice_));
  watch_.reset();
  taken_(false);
  clock_.turn(10 * kPoll);
  EXPECT_TRUE(questions_.empty());
}

}  // namespace
}  // namespace runtime
