#include "runtime/node/end_reports.h"

#include "tests/runtime/node/fake_head.h"

namespace runtime {
namespace {

DeathCause killed(std::int32_t pid) {
  DeathCause cause;
  cause.text = "killed by SIGKILL";
  cause.pid = pid;
  return cause;
}

TEST(EndReports, HoldsAnEndUntilTheHeadKnows) {
  FakeHead head;
  EndReports ends(head.ask());
  const ActorId actor = ActorId::random();
  const JobId job = JobId::random();
  ends.actor_ended(job, {actor, 3, killed(17)});
  EXPECT_EQ(ends.actors().count({actor, 3}), 1u);
  EXPECT_EQ(head.next<control::ActorExited>().actor, actor);
  EXPECT_EQ(head.job(), job);
  head.answer();
  EXPECT_TRUE(ends.actors().empty());
  EXPECT_EQ(ends.how_ended(17), "killed by SIGKILL");
  EXPECT_EQ(ends.how_ended(18), "");
}

TEST(EndReports, HoldsAnEndThatTheHeadHasNotTaken) {
  FakeHead head;
  EndReports ends(head.ask());
  const JobId job = JobId::random();
  ends.job_ended(job, JobOutcome::kStopped, killed(1));
  EXPECT_EQ(head.next<control::EndJob>().outcome, JobOutcome::kStopped);
  head.answer(unavailable("the head is away"));
  EXPECT_EQ(ends.jobs(), std::set<JobId>{job});
}

TEST(EndReports, ReportsAllActorsOfAProcessAtOnce) {
  FakeHead head;
  EndReports ends(head.ask());
  const control::ActorInstance a{ActorId::random(), 1}, b{ActorId::random(), 2};
  ends.actors_ended(JobId::random(), {{a, b}, killed(5)});
  EXPECT_EQ(ends.actors(), (std::set<control::ActorInstance>{a, b}));
  EXPECT_EQ(head.next<control::ActorsExited>().actors.size(), 2u);
  head.answer();
  EXPECT_TRUE(ends.actors().empty());
}

TEST(EndReports, ConfirmationsMayComeTooLate) {
  FakeHead head;
  {
    EndReports ends(head.ask());
    ends.job_ended(JobId::random(), JobOutcome::kFailed, {});
  }
  head.answer();
}

}  // namespace
}  // namespace runtime
