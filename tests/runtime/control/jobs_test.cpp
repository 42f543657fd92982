#include "runtime/control/jobs.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(JobState, IsPendingUntilThereIsAProcessAndEndsAsItsOutcome) {
  JobInfo job;
  EXPECT_EQ(job_state(job), "pending");
  job.pid = 7;
  EXPECT_EQ(job_state(job), "running");
  job.running = false;
  job.outcome = JobOutcome::kSucceeded;
  EXPECT_EQ(job_state(job), "succeeded");
  job.outcome = JobOutcome::kFailed;
  EXPECT_EQ(job_state(job), "failed");
  job.outcome = JobOutcome::kStopped;
  EXPECT_EQ(job_state(job), "stopped");
  job.pid = 0;
  EXPECT_EQ(job_state(job), "stopped") << "before it began";
}

TEST(JobState, AnOutcomeThatIsNotKnownIsNoSuccess) {
  JobInfo job;
  job.running = false;
  EXPECT_EQ(job_state(job), "failed");
  job.outcome = static_cast<JobOutcome>(99);  // of a newer release
  EXPECT_EQ(job_state(job), "failed");
}

}  // namespace
}  // namespace runtime
