#include "runtime/observe/stack_probe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/observe/activity_page.h"
#include "runtime/observe/stack_handler.h"
#include "runtime/process/process_info.h"
#include "tests/support/on_loop.h"

namespace runtime {
namespace {

/// A process that does nothing, and has said nothing to this one.
class IdleChild {
 public:
  IdleChild() : pid_(::fork()) {
    if (pid_ == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (pid_ == 0) ::pause();
  }
  ~IdleChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  pid_t pid() const { return pid_; }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
  }

 private:
  const pid_t pid_;
};

class StackProbesTest : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Result<StackReport>>>;

  ~StackProbesTest() override {
    run_on(loop_, [&] { probes_.reset(); });
  }
  Answer take(pid_t pid) {
    auto answer = std::make_shared<std::optional<Result<StackReport>>>();
    run_on(loop_, [&] {
      probes_->take(pid, [answer](Result<StackReport> report) {
        EXPECT_FALSE(answer->has_value());
        answer->emplace(std::move(report));
      });
    });
    return answer;
  }
  StackReport outcome(const Answer& answer) {
    EXPECT_TRUE(comes_true(loop_, [&] { return answer->has_value(); }));
    return on_loop(loop_, [&] {
      EXPECT_TRUE(*answer && (*answer)->ok());
      return *answer ? (*answer)->value_or({}) : StackReport();
    });
  }
  bool is_there(const Answer& answer) {
    return on_loop(loop_, [&] { return answer->has_value(); });
  }
  /// This process shows its stacks.
  void show_own() {
    auto page = ActivityPage::create();
    ASSERT_TRUE(page.ok()) << page.status().to_string();
    static const std::shared_ptr<ActivityPage> shown = *page;  // the handler keeps the first
    install_stack_handler(shown);
    page_ = shown;
    run_on(loop_, [&] {
      const Status adopted = table_.adopt({1, ::getpid(), "worker"}, *page_->duplicate());
      EXPECT_TRUE(adopted.ok()) << adopted.to_string();
    });
  }

  EventLoop loop_;
  ActivityTable table_;
  std::shared_ptr<ActivityPage> page_;
  std::unique_ptr<StackProbes> probes_ = std::make_unique<StackProbes>(loop_, table_);
};

TEST_F(StackProbesTest, HasTheStackOfAThreadAndWhatItRuns) {
  show_own();
  const ActorId actor = ActorId::random();
  const auto of_class = page_->class_of("Counter", std::vector<std::string>{"add"});
  page_->begin_call(actor, of_class.method(0), activity_now());
  const StackReport report = outcome(take(::getpid()));
  page_->end_running();
  EXPECT_EQ(report.pid, ::getpid());
  const auto own = std::ranges::find_if(
      report.threads, [](const ThreadStack& thread) { return thread.tid == ::gettid(); });
  ASSERT_NE(own, report.threads.end());
  EXPECT_FALSE(own->frames.empty()) << report.note;
  EXPECT_EQ(own->running, "Counter.add");
  EXPECT_EQ(own->actor, actor);
}

TEST_F(StackProbesTest, EveryQuestionIsAnsweredByItsOwnSignals) {
  show_own();
  std::vector<Answer> answers;
  run_on(loop_, [&] {  // no thread but the loop's comes to answer before the last one is asked
    for (int i = 0; i < 3; ++i) {
      answers.push_back(std::make_shared<std::optional<Result<StackReport>>>());
      probes_->take(::getpid(), [answer = answers.back()](Result<StackReport> report) {
        answer->emplace(std::move(report));
      });
    }
  });
  for (const Answer& answer : answers) {
    const StackReport report = outcome(answer);
    const auto own = std::ranges::find_if(
        report.threads, [](const ThreadStack& thread) { return thread.tid == ::gettid(); });
    ASSERT_NE(own, report.threads.end());
    EXPECT_FALSE(own->frames.empty()) << report.note;
  }
}

TEST_F(StackProbesTest, SendsNoSignalThatWouldEndAProcess) {
  const IdleChild child;
  const StackReport report = outcome(take(child.pid()));
  EXPECT_NE(report.note.find("no handler"), std::string::npos) << report.note;
  ASSERT_EQ(report.threads.size(), 1u);
  EXPECT_EQ(report.threads[0].tid, child.pid());
  EXPECT_TRUE(report.threads[0].frames.empty());
  EXPECT_EQ(::kill(child.pid(), 0), 0);
  EXPECT_EQ(::waitpid(child.pid(), nullptr, WNOHANG), 0) << "it lives";
}

TEST_F(StackProbesTest, SaysHowAStoppedProcessGoesOn) {
  const IdleChild child;
  child.stop();
  const StackReport report = outcome(take(child.pid()));
  EXPECT_EQ(report.process, "stopped");
  EXPECT_NE(report.note.find("kill -CONT " + std::to_string(child.pid())), std::string::npos)
      << report.note;
}

TEST_F(StackProbesTest, AProcessThatHasEndedHasNone) {
  pid_t ended = 0;
  {
    const IdleChild child;
    ended = child.pid();
  }
  const Answer answer = take(ended);
  ASSERT_TRUE(is_there(answer));
  EXPECT_EQ((*answer)->status().code(), ErrorCode::kNotFound);
}

TEST_F(StackProbesTest, AsksForSoManyAtATime) {
  const IdleChild child;
  std::vector<Answer> answers;
  std::optional<Result<StackReport>> refused;
  run_on(loop_, [&] {
    for (int i = 0; i < 8; ++i) {
      answers.push_back(std::make_shared<std::optional<Result<StackReport>>>());
      probes_->take(child.pid(), [answer = answers.back()](Result<StackReport> report) {
        answer->emplace(std::move(report));
      });
    }
    probes_->take(child.pid(), [&](Result<StackReport> report) { refused = std::move(report); });
  });
  ASSERT_TRUE(refused) << "at once";
  EXPECT_EQ(refused->status().code(), ErrorCode::kResourceExhausted);
  for (const Answer& answer : answers) EXPECT_EQ(outcome(answer).threads.size(), 1u);
  EXPECT_EQ(outcome(take(child.pid())).threads.size(), 1u) << "there is room again";
}

TEST_F(StackProbesTest, AnswersNothingAfterItsEnd) {
  const IdleChild child;
  run_on(loop_, [&] {
    probes_->take(child.pid(), [](const Result<StackReport>&) { ADD_FAILURE(); });
    probes_.reset();
  });
  run_on(loop_, [] {});
}

TEST_F(StackProbesTest, AnAnswerMayAskAgain) {
  const IdleChild child;
  std::optional<Result<StackReport>> second;
  run_on(loop_, [&] {
    probes_->take(child.pid(), [&](const Result<StackReport>&) {
      probes_->take(child.pid(), [&](Result<StackReport> report) { second = std::move(report); });
    });
  });
  EXPECT_TRUE(comes_true(loop_, [&] { return second.has_value(); }));
  EXPECT_TRUE(second->ok());
}

}  // namespace
}  // namespace runtime
