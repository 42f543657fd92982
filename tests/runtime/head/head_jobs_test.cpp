// Jobs as the head knows them.
#include "tests/runtime/head/head_fixture.h"

namespace runtime {
namespace {

class HeadJobs : public HeadTest {
 protected:
  JobInfo info(JobId job) {
    Answer answer = ask(control::QueryJob{job});
    EXPECT_TRUE(status(answer).ok());
    return (*answer)->ok() ? std::get<JobInfo>(***answer) : JobInfo();
  }
  static control::EndJob end(JobId job, JobOutcome outcome = JobOutcome::kFailed) {
    control::EndJob body;
    body.job = job;
    body.outcome = outcome;
    body.cause = {"exited with code 3", 7, 3, 0, "the last line"};
    body.ended_ms = 1'700'000'000'000;
    return body;
  }
};

TEST_F(HeadJobs, RemembersHowAJobEnded) {
  EXPECT_EQ(job_state(info(job_)), "running");
  EXPECT_TRUE(status(ask(end(job_))).ok());
  const JobInfo ended = info(job_);
  EXPECT_EQ(job_state(ended), "failed");
  EXPECT_EQ(ended.end.exit_code, 3);
  EXPECT_EQ(ended.end.output_tail, "the last line");
  EXPECT_EQ(ended.ended_ms, 1'700'000'000'000u);
  EXPECT_EQ(head().cluster_state().jobs[0].end.output_tail, "");  // overviews go without
  // Only once.
  EXPECT_TRUE(status(ask(end(job_, JobOutcome::kSucceeded))).ok());
  EXPECT_EQ(job_state(info(job_)), "failed");
  restart_head();
  EXPECT_EQ(info(job_), ended);
}

TEST_F(HeadJobs, IsPendingUntilItsProcessRuns) {
  const JobId job = JobId::random();
  JobInfo submitted{job, {}, "./driver", 0, true, true, "alice", 5, 0, JobOutcome::kNone, {}};
  EXPECT_TRUE(status(ask(control::StartJob{submitted, {}}, job)).ok());
  EXPECT_EQ(job_state(info(job)), "pending");
  submitted.pid = 12;
  EXPECT_TRUE(status(ask(control::StartJob{submitted, {}}, job)).ok());
  EXPECT_EQ(job_state(info(job)), "running");
  EXPECT_EQ(info(job).user, "alice");
}

TEST_F(HeadJobs, OneThatWaitedGoesToTheNodeThatHasItsPlace) {
  const NodeId other = join(0);
  living(4);  // all that the node has at which it is submitted
  const NodeId large = join(1);
  JobInfo waiting;
  waiting.job = JobId::random();
  waiting.place = GroupId::random();
  EXPECT_TRUE(status(ask(control::StartJob{waiting, {}}, waiting.job))
                  .ok());  // at node_, where it was submitted
  GroupSpec place;
  place.group = waiting.place;
  place.bundles = {{{"CPU", 1}}};
  Answer placed = ask(control::CreateGroup{place}, waiting.job);
  // Not before it is reserved, and nowhere else.
  EXPECT_EQ(status(ask(control::StartJob{waiting, {}}, waiting.job, large)).code(),
            ErrorCode::kInvalidArgument);
  reserved();
  ASSERT_TRUE(status(placed).ok());
  EXPECT_EQ(status(ask(control::StartJob{waiting, {}}, waiting.job, other)).code(),
            ErrorCode::kInvalidArgument);
  JobInfo liar = waiting;
  liar.place = GroupId::random();
  EXPECT_EQ(status(ask(control::StartJob{liar, {}}, waiting.job, large)).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(status(ask(control::StartJob{waiting, {}}, waiting.job, large)).ok());
  EXPECT_EQ(info(waiting.job).node, large);
  // It is not the first node's any more, whatever that still says.
  EXPECT_TRUE(status(ask(end(waiting.job, JobOutcome::kStopped))).ok());
  EXPECT_EQ(job_state(info(waiting.job)), "pending");
  restart_head();
  EXPECT_EQ(info(waiting.job).place, waiting.place);
  EXPECT_TRUE(status(ask(end(waiting.job), {}, large)).ok());
  EXPECT_EQ(job_state(info(waiting.job)), "failed");
  EXPECT_EQ(head().tables().groups().find(waiting.place), nullptr);
}

TEST_F(HeadJobs, NoJobTakesTheIdOfARunningJob) {
  JobInfo thief;
  thief.job = job_;
  thief.place = GroupId::random();
  thief.command = "./other";
  EXPECT_EQ(status(ask(control::StartJob{thief, {}}, job_)).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(info(job_).command, "./driver");
  EXPECT_TRUE(info(job_).place.is_none());
}

TEST_F(HeadJobs, OneThatWasStoppedWhileItWaitedDoesNotStart) {
  JobInfo waiting;
  waiting.job = JobId::random();
  waiting.place = GroupId::random();
  EXPECT_TRUE(status(ask(control::StartJob{waiting, {}}, waiting.job)).ok());
  GroupSpec place;
  place.group = waiting.place;
  place.bundles = {{{"CPU", 1}}};
  ask(control::CreateGroup{place}, waiting.job);
  reserved();
  EXPECT_TRUE(status(ask(end(waiting.job, JobOutcome::kStopped))).ok());
  EXPECT_EQ(status(ask(control::StartJob{waiting, {}}, waiting.job)).code(), ErrorCode::kCancelled);
  EXPECT_FALSE(head().tables().jobs().runs(waiting.job));
}

TEST_F(HeadJobs, TheEndOfADriverIsNotThatOfItsJob) {
  ActorSpec spec = actor();
  spec.max_restarts = 5;
  living(spec);
  ask(control::KvPut{"key", "value"});
  control::EndJob body = end(job_);
  body.goes_on = true;
  EXPECT_TRUE(status(ask(body)).ok());
  auto told = links_.take<control::EndJob>();
  ASSERT_TRUE(told);
  EXPECT_TRUE(std::get<control::EndJob>(told->request.body).files_needed);
  exit(spec);
  EXPECT_EQ(record(spec).phase, ActorPhase::kDead);  // not started again
  EXPECT_TRUE(head().tables().jobs().runs(job_));
  EXPECT_EQ(status(ask(control::KvGet{"key", false})).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(status(ask(end(job_))).ok());
  told = links_.take<control::EndJob>();
  ASSERT_TRUE(told);
  EXPECT_FALSE(std::get<control::EndJob>(told->request.body).files_needed);
}

TEST_F(HeadJobs, FilesAreNeededAsLongAsSomethingOutlivesTheJob) {
  ActorSpec spec = actor(1, "service");
  spec.detached = true;
  spec.name_space = "team";
  living(spec);
  ask(end(job_));
  auto told = links_.take<control::EndJob>();
  ASSERT_TRUE(told);
  EXPECT_TRUE(std::get<control::EndJob>(told->request.body).files_needed);
  EXPECT_FALSE(links_.take<control::EndJob>());
  exit(spec);
  told = links_.take<control::EndJob>();
  ASSERT_TRUE(told);
  EXPECT_FALSE(std::get<control::EndJob>(told->request.body).files_needed);
}

TEST_F(HeadJobs, ALostNodeFailsItsJobsWithTheReason) {
  const NodeId other = join(2);
  const JobId job = JobId::random();
  start_job(job, other);
  head().node_lost(other, "it has been silent for 10 s");
  EXPECT_EQ(job_state(info(job)), "failed");
  EXPECT_NE(info(job).end.text.find("node " + other.short_hex()), std::string::npos);
  EXPECT_EQ(info(job).end.exit_code, -1);
}

TEST_F(HeadJobs, CancelsWhereTheDriverRuns) {
  const NodeId other = join(2);
  const JobId job = JobId::random();
  start_job(job, other);
  Answer asked = ask(control::CancelJob{job});
  auto sent = links_.take<control::CancelJob>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->node, other);
  EXPECT_FALSE(asked->has_value());
  sent->answer(ControlAnswer{});
  EXPECT_TRUE(status(asked).ok());
  ask(end(job, JobOutcome::kStopped), job, other);
  EXPECT_TRUE(status(ask(control::CancelJob{job})).ok());  // it has ended: no error
  EXPECT_FALSE(links_.take<control::CancelJob>());
  EXPECT_EQ(status(ask(control::CancelJob{JobId::random()})).code(), ErrorCode::kNotFound);
  EXPECT_EQ(status(ask(control::QueryJob{JobId::random()})).code(), ErrorCode::kNotFound);
}

TEST_F(HeadJobs, AnEndThatIsToldAfterARestartHasItsExitCode) {
  restart_head();
  EXPECT_TRUE(return_node(node_, {}, {job_})
                  .ok());  // the node says that it has the job still: its end is not confirmed
  EXPECT_TRUE(status(ask(end(job_))).ok());
  EXPECT_EQ(info(job_).end.exit_code, 3);
}

}  // namespace
}  // namespace runtime
