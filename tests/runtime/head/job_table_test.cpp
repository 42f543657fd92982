// The jobs as the head records them.
#include "runtime/head/job_table.h"

#include "tests/runtime/head/table_writes.h"

namespace runtime {
namespace {

class JobTableTest : public ::testing::Test {
 protected:
  JobId start(JobId job = JobId::random(), const std::string& name_space = "") {
    command::StartJob started;
    started.info.job = job;
    started.info.command = "./driver";
    started.driver.name_space = name_space;
    table_.apply(started);
    return job;
  }
  void end(JobId job) {
    DeathCause cause;
    cause.text = "exited with code 3";
    cause.exit_code = 3;
    table_.end({job, JobOutcome::kFailed, cause, 77}, ++order_);
  }
  static void forget_ended(JobTable& table) {
    table.forget_ended([](JobId) { return false; });
  }
  /// A record as a journal has it.
  static journal::Job entry(bool running, JobOutcome outcome, std::uint64_t ended_as) {
    journal::Job job;
    job.info.job = JobId::random();
    job.info.running = running;
    job.info.outcome = outcome;
    job.ended_as = ended_as;
    return job;
  }
  static Status restored(const journal::Job& job) {
    JobTable table;
    EXPECT_TRUE(table.restore(job).ok());
    return table.end_restore();
  }

  std::uint64_t order_ = 0;
  JobTable table_;
};

TEST_F(JobTableTest, AnEndedJobSaysHowItEnded) {
  const JobId job = start();
  EXPECT_TRUE(table_.runs(job));
  end(job);
  EXPECT_FALSE(table_.runs(job));
  const JobInfo& info = table_.find(job)->info;
  EXPECT_EQ(info.outcome, JobOutcome::kFailed);
  EXPECT_EQ(info.end.exit_code, 3);
  EXPECT_EQ(info.ended_ms, 77u);
  EXPECT_FALSE(table_.runs(JobId::random()));
}

TEST_F(JobTableTest, ANamespaceIsTheDriversOrTheJobsAlone) {
  const JobId named = start(JobId::random(), "team"), alone = start(), unknown = JobId::random();
  EXPECT_EQ(table_.name_space(named), "team");
  EXPECT_EQ(table_.name_space(alone), JobTable::private_name_space(alone));
  EXPECT_EQ(table_.name_space(unknown), JobTable::private_name_space(unknown));
}

TEST_F(JobTableTest, OneThatStartsAgainIsNotForgotten) {
  const JobId again = start();
  end(again);
  start(again);
  EXPECT_TRUE(table_.runs(again));
  for (std::size_t i = 0; i < JobTable::kEndedKept + 1; ++i) end(start());
  forget_ended(table_);
  EXPECT_TRUE(table_.runs(again));
  EXPECT_EQ(table_.all().size(), JobTable::kEndedKept + 1);
}

TEST_F(JobTableTest, WhatIsNeededStaysThoughItIsTheOldest) {
  const JobId needed = start();
  end(needed);
  const JobId oldest = start();
  end(oldest);
  for (std::size_t i = 0; i < JobTable::kEndedKept - 1; ++i) end(start());
  table_.follow();
  table_.forget_ended([&](JobId job) { return job == needed; });
  EXPECT_TRUE(table_.find(needed));
  EXPECT_EQ(table_.find(oldest), nullptr);
  EXPECT_EQ(writes_of(table_), (TableWrites{{journal::key_of(oldest), std::nullopt}}));
}

TEST_F(JobTableTest, ARestoredTableForgetsInTheSameOrder) {
  table_.follow();
  start(JobId::random(), "team");
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < JobTable::kEndedKept + 1; ++i) jobs.push_back(start());
  for (const JobId& job : jobs) end(job);
  JobTable restored;
  EXPECT_EQ(restore_from<journal::Job>(restored, writes_of(table_)), Status());
  EXPECT_EQ(restored.end_restore(), Status());
  EXPECT_TRUE(restored.all() == table_.all());
  forget_ended(restored);
  EXPECT_EQ(restored.find(jobs.front()), nullptr) << "the one that ended first";
  EXPECT_EQ(restored.all().size(), JobTable::kEndedKept + 1);
}

TEST_F(JobTableTest, ARecordThatContradictsItselfIsNotRestored) {
  EXPECT_TRUE(restored(entry(true, JobOutcome::kNone, 0)).ok());
  EXPECT_TRUE(restored(entry(false, JobOutcome::kStopped, 4)).ok());
  for (const journal::Job& bad :
       {entry(true, JobOutcome::kNone, 4), entry(false, JobOutcome::kFailed, 0),
        entry(true, JobOutcome::kFailed, 0), entry(false, JobOutcome::kNone, 4)}) {
    const Status status = restored(bad);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.message().find(bad.info.job.hex()), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace runtime
