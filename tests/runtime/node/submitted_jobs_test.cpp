#include "runtime/node/submitted_jobs.h"

#include "runtime/transport/blocking.h"
#include "tests/runtime/node/fake_head.h"
#include "tests/runtime/transport/fixture.h"
#include "tests/support/on_loop.h"

namespace runtime {
namespace {

class SubmittedJobsTest : public ::testing::Test {
 protected:
  SubmittedJobsTest() {
    SubmittedJobsOptions options;
    options.runner.session_dir = folder_.path().string();
    options.is_stopping = [this] { return stopping_; };
    std::filesystem::create_directories(folder_.path() / "logs");
    jobs_ = std::make_unique<SubmittedJobs>(pair_.server_loop, options, head_.ask(), ends_, files_,
                                            fetcher_);
  }
  ~SubmittedJobsTest() override {
    on_loop(pair_.server_loop, [&] {
      jobs_.reset();
      return 0;
    });
  }
  JobId start(std::vector<std::string> argv) {
    JobInfo info;
    info.job = JobId::random();
    control::SubmitJob request;
    request.argv = std::move(argv);
    request.working_dir = folder_.path().string();
    on_loop(pair_.server_loop, [&] {
      jobs_->start(info, std::move(request), {}, pair_.server,
                   [this](Result<ControlAnswer> answer) { answer_ = std::move(answer); });
      return 0;
    });
    return info.job;
  }
  void let_head_answer(Result<ControlAnswer> answer = ControlAnswer{}) {
    on_loop(pair_.server_loop, [&] {
      head_.answer(std::move(answer));
      return 0;
    });
  }
  control::EndJob wait_for_end() {
    EXPECT_TRUE(comes_true(pair_.server_loop, [&] { return head_.waiting() > 0; }));
    return on_loop(pair_.server_loop, [&] { return head_.next<control::EndJob>(); });
  }

  support::TemporaryFolder folder_;
  Pair pair_;
  FakeHead head_;
  EndReports ends_{head_.ask()};
  JobFiles files_{pair_.server_loop,
                  {.cache = folder_.path() / "cache", .folders = folder_.path() / "jobs"}};
  JobFetcher fetcher_{pair_.server_loop, {}, files_};
  bool stopping_ = false;
  std::optional<Result<ControlAnswer>> answer_;
  std::unique_ptr<SubmittedJobs> jobs_;
};

TEST_F(SubmittedJobsTest, RunsAJobOnceItIsRecorded) {
  const JobId job = start({"true"});
  EXPECT_TRUE(jobs_->contains(job));
  EXPECT_FALSE(jobs_->runs(job));
  EXPECT_EQ(head_.next<control::StartJob>().info.job, job);
  let_head_answer();
  ASSERT_TRUE(answer_ && answer_->ok());
  EXPECT_NE(head_.next<control::StartJob>().info.pid, 0) << "the head learns of its process";
  let_head_answer();
  EXPECT_EQ(wait_for_end().outcome, JobOutcome::kSucceeded);
  EXPECT_EQ(jobs_->find(job), nullptr);
}

TEST_F(SubmittedJobsTest, SaysWhyAJobCannotBeStarted) {
  start({"/no/such/program"});
  let_head_answer();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->status().code(), ErrorCode::kNotFound);
  const auto end = wait_for_end();
  EXPECT_EQ(end.outcome, JobOutcome::kFailed);
  EXPECT_TRUE(end.cause.text.starts_with("it could not be started: ")) << end.cause.text;
}

TEST_F(SubmittedJobsTest, StartsNothingThatWasStoppedMeanwhile) {
  const JobId job = start({"true"});
  EXPECT_TRUE(jobs_->cancel(job, "stopped on request").ok());
  let_head_answer();
  EXPECT_EQ(wait_for_end().cause.text, "stopped on request");
  EXPECT_EQ(answer_->status().code(), ErrorCode::kCancelled);
}

TEST_F(SubmittedJobsTest, StartsNothingOnceTheNodeStops) {
  start({"true"});
  stopping_ = true;
  let_head_answer();
  EXPECT_EQ(wait_for_end().cause.text, "its node was stopped");
}

TEST_F(SubmittedJobsTest, LeavesAJobThatIsAnothersToItsOwner) {
  const JobId job = start({"true"});
  let_head_answer(invalid_argument("job is there already"));
  EXPECT_FALSE(jobs_->contains(job));
  EXPECT_EQ(head_.waiting(), 0u) << "its end is not reported";
}

}  // namespace
}  // namespace runtime
