#include "runtime/node/job_queue.h"

#include "tests/runtime/node/fake_head.h"
#include "tests/runtime/transport/fixture.h"

namespace runtime {
namespace {

class JobQueueTest : public ::testing::Test {
 protected:
  JobId add() {
    JobInfo info;
    info.job = JobId::random();
    info.place = place_;
    info.user = "alice";
    control::QueueJob request;
    request.job = info.job;
    request.place = place_;
    request.resources = {{"CPU", 2}};
    const JobId job = info.job;
    queue_.add(std::move(info), *pair_.server, std::move(request), milliseconds(100),
               [this](Result<ControlAnswer> answer) { answers_.push_back(std::move(answer)); });
    return job;
  }

  Pair pair_;
  FakeHead head_;
  EndReports ends_{head_.ask()};
  JobQueue queue_{head_.ask(), ends_};
  const GroupId place_ = GroupId::random();
  std::vector<Result<ControlAnswer>> answers_;
};

TEST_F(JobQueueTest, RecordsAJobAndThenReservesItsPlace) {
  const JobId job = add();
  EXPECT_TRUE(queue_.waits_for(job, place_));
  EXPECT_FALSE(queue_.waits_for(job, GroupId::random()));
  EXPECT_TRUE(queue_.is_of(job, "alice"));
  EXPECT_FALSE(queue_.is_of(job, "bob"));
  EXPECT_EQ(head_.next<control::StartJob>().info.job, job);
  head_.answer();
  EXPECT_EQ(head_.next<control::CreateGroup>().spec.group, place_);
  head_.answer(ControlAnswer{GroupState{}});
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(answers_[0].ok());
  EXPECT_TRUE(queue_.contains(job)) << "until it is submitted";
  queue_.remove(job);
  EXPECT_FALSE(queue_.contains(job));
}

TEST_F(JobQueueTest, LeavesAJobThatIsAnothersToItsOwner) {
  const JobId job = add();
  head_.answer(invalid_argument("job is there already"));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].status().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(queue_.contains(job));
  EXPECT_EQ(head_.waiting(), 0u) << "nothing of it is reported";
}

TEST_F(JobQueueTest, EndsAJobWhoseSubmitterIsGone) {
  const JobId job = add();
  head_.answer();
  queue_.on_submitter_closed(*pair_.server);
  EXPECT_FALSE(queue_.contains(job));
  head_.answer(cancelled("it has ended"));  // its place
  EXPECT_EQ(head_.next<control::EndJob>().outcome, JobOutcome::kStopped);
  EXPECT_EQ(head_.waiting(), 1u) << "its end is reported once";
}

TEST_F(JobQueueTest, EndsAJobThatFindsNoPlace) {
  const JobId job = add();
  head_.answer();
  head_.answer(deadline_exceeded("CPU 2 is missing"));
  EXPECT_FALSE(queue_.contains(job));
  const auto end = head_.next<control::EndJob>();
  EXPECT_EQ(end.outcome, JobOutcome::kFailed);
  EXPECT_EQ(end.cause.text, "CPU 2 is missing");
}

}  // namespace
}  // namespace runtime
