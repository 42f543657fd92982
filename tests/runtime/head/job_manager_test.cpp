// The ends of jobs, without the rest of the head.
#include "runtime/head/job_manager.h"

#include "parts_fixture.h"

namespace runtime {
namespace {

class JobManagerTest : public PartTest {
 protected:
  JobManagerTest() : node_(add_node(4)), job_(add_job(node_)) {}

  static control::EndJob end(JobId job, bool goes_on = false) {
    control::EndJob body;
    body.job = job;
    body.outcome = JobOutcome::kFailed;
    body.cause.text = "exited with code 3";
    body.goes_on = goes_on;
    return body;
  }
  std::size_t ends_told() {
    std::size_t count = 0;
    while (links_.take<control::EndJob>()) ++count;
    return count;
  }

  const NodeId node_;
  const JobId job_;
  int looks_ = 0;
  FakeActors actors_{context_};
  FakeGroups groups_{context_};
  PublishedObjects published_{context_};
  JobManager jobs_{context_, actors_, groups_, published_, [this] { ++looks_; }};
};

TEST_F(JobManagerTest, TheEndOfAJobEndsWhatHasNoProcessAndTellsEveryNode) {
  add_node(1);
  const ActorSpec pending = add_actor(job_), living = add_living(job_);
  const GroupSpec group = add_group(job_, 1);
  EXPECT_TRUE(status(ask(jobs_, end(job_), node_, job_)).ok());
  EXPECT_FALSE(tables_.jobs().runs(job_));
  EXPECT_EQ(ends_told(), 2u);
  ASSERT_EQ(actors_.deaths.size(), 1u) << "its node ends the others";
  EXPECT_EQ(actors_.deaths[0].first, pending.actor);
  ASSERT_EQ(groups_.dropped.size(), 1u);
  EXPECT_EQ(groups_.dropped[0].second.message(),
            "job " + job_.short_hex() + " ended: exited with code 3");
  EXPECT_EQ(looks_, 1);
  EXPECT_FALSE(record(living).ending);
}

TEST_F(JobManagerTest, OnlyItsNodeKnowsTheEnd) {
  const NodeId other = add_node(1);
  EXPECT_TRUE(status(ask(jobs_, end(job_), other, job_)).ok());
  EXPECT_TRUE(tables_.jobs().runs(job_));
}

TEST_F(JobManagerTest, WhenADriverEndsThatTheJobOutlivesItsActorsStartNoMore) {
  const ActorSpec living = add_living(job_, 1, -1);
  EXPECT_TRUE(status(ask(jobs_, end(job_, true), node_, job_)).ok());
  EXPECT_TRUE(tables_.jobs().runs(job_));
  EXPECT_TRUE(record(living).ending);
}

TEST_F(JobManagerTest, WhatOutlivesAJobTellsTheNodesAgainWhenItIsDead) {
  ActorSpec spec = add_actor(job_);
  spec.actor = ActorId::random();
  spec.outlives_job = true;
  add_actor(job_, spec);
  ask(jobs_, end(job_), node_, job_);
  const auto first = links_.take<control::EndJob>();
  ASSERT_TRUE(first);
  EXPECT_TRUE(std::get<control::EndJob>(first->request.body).files_needed);
  context_.commit(command::ActorDead{spec.actor, {}});
  jobs_.outliving_actor_died(job_);
  const auto last = links_.take<control::EndJob>();
  ASSERT_TRUE(last);
  EXPECT_FALSE(std::get<control::EndJob>(last->request.body).files_needed);
}

TEST_F(JobManagerTest, AJobThatANodeNoLongerRunsHasEnded) {
  const JobId kept = add_job(node_);
  control::RegisterNode body;
  body.info.node = node_;
  body.jobs = {kept};
  jobs_.node_returned(body);
  EXPECT_FALSE(tables_.jobs().runs(job_));
  EXPECT_TRUE(tables_.jobs().runs(kept));
  jobs_.node_lost(node_, "it is gone");
  EXPECT_FALSE(tables_.jobs().runs(kept));
  EXPECT_EQ(tables_.jobs().find(kept)->info.end.text, "it is gone");
}

TEST_F(JobManagerTest, OneThatEndsBeforeItsNodeCanStopItIsStopped) {
  Answer gone = ask(jobs_, control::CancelJob{job_}, node_, {});
  Answer lives = ask(jobs_, control::CancelJob{job_}, node_, {});
  auto first = links_.take<control::CancelJob>(), second = links_.take<control::CancelJob>();
  ASSERT_TRUE(first && second);
  second->answer(unavailable("its node is gone"));
  EXPECT_EQ(status(lives).code(), ErrorCode::kUnavailable);
  jobs_.node_lost(node_, "it is gone");
  first->answer(unavailable("its node is gone"));
  EXPECT_TRUE(status(gone).ok());
}

TEST_F(JobManagerTest, IsRefusedASecondNode) {
  const NodeId other = add_node(1);
  control::StartJob start{tables_.jobs().find(job_)->info, {}};
  EXPECT_TRUE(status(ask(jobs_, start, node_, job_)).ok());
  EXPECT_EQ(status(ask(jobs_, start, other, job_)).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace runtime
