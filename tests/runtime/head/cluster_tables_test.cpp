// Effects of one table's change on another.
#include "runtime/head/cluster_tables.h"

#include <gtest/gtest.h>

#include <map>

namespace runtime {
namespace {

class ClusterTablesTest : public ::testing::Test {
 protected:
  ClusterTablesTest() {
    NodeInfo info;
    info.node = node_;
    tables_.apply(command::AddNode{info});
    start(job_);
  }
  void start(JobId job, const std::string& user = "") {
    JobInfo info;
    info.user = user;
    info.job = job;
    info.node = node_;
    info.running = true;
    tables_.apply(command::StartJob{info, {}});
  }
  void end(JobId job) { tables_.apply(command::EndJob{job, JobOutcome::kFailed}); }
  ActorId add_outliving(JobId job) {
    ActorSpec spec;
    spec.actor = ActorId::random();
    spec.class_name = "Counter";
    spec.outlives_job = true;
    tables_.apply(command::AddActor{job, spec});
    return spec.actor;
  }
  void put(JobId job) { tables_.apply(command::PutKey{job, "key", "value"}); }
  std::map<std::string, std::optional<std::string>> changes() {
    std::map<std::string, std::optional<std::string>> written;
    for (JournalWrite& write : tables_.changes()) {
      EXPECT_FALSE(written.contains(write.key)) << write.key;
      written[write.key] = std::move(write.value);
    }
    return written;
  }

  const NodeId node_ = NodeId::random();
  const JobId job_ = JobId::random();
  ClusterTables tables_;
};

TEST_F(ClusterTablesTest, PairsGoWithTheJobOrTheLastActorThatOutlivesIt) {
  put(job_);
  const ActorId first = add_outliving(job_), last = add_outliving(job_);
  end(job_);
  EXPECT_TRUE(tables_.job_serves(job_));
  tables_.apply(command::ActorDead{first, {}});
  EXPECT_TRUE(tables_.pairs().find(job_, "key"));
  tables_.apply(command::ActorDead{last, {}});
  EXPECT_FALSE(tables_.job_serves(job_));
  EXPECT_FALSE(tables_.pairs().find(job_, "key"));
}

TEST_F(ClusterTablesTest, EndedJobsAreForgottenButThoseThatActorsOutlive) {
  add_outliving(job_);
  end(job_);
  for (std::size_t i = 0; i < JobTable::kEndedKept + 5; ++i) {
    const JobId job = JobId::random();
    start(job);
    end(job);
  }
  EXPECT_EQ(tables_.jobs().all().size(), JobTable::kEndedKept);
  EXPECT_TRUE(tables_.jobs().find(job_));
}

TEST_F(ClusterTablesTest, AUserWithManyEndedJobsLosesHisOwn) {
  const JobId others = JobId::random(), running = JobId::random();
  start(others, "alice");
  end(others);
  start(running, "bob");
  JobId last;
  for (std::size_t i = 0; i < 2 * JobTable::kEndedKept; ++i) {
    last = JobId::random();
    start(last, "bob");
    end(last);
  }
  EXPECT_EQ(tables_.jobs().all().size(), JobTable::kEndedKept + 2) << "job_ and this one run";
  EXPECT_TRUE(tables_.jobs().find(others));
  EXPECT_TRUE(tables_.jobs().find(running));
  EXPECT_TRUE(tables_.jobs().find(last));
}

TEST_F(ClusterTablesTest, ANodesCopiesOfPublishedObjectsGoWithIt) {
  ObjectLocation copy;
  copy.node = node_;
  const PublishedTable::Name name("space", "weights");
  tables_.apply(command::Publish{name, 1, std::vector{copy}, ""});
  tables_.follow();
  tables_.apply(command::RemoveNode{node_, "it is gone"});
  EXPECT_EQ(tables_.published().find(name)->at(1).loss, "it is gone");
  EXPECT_EQ(tables_.nodes().departure(node_)->why, "it is gone");
  const auto written = changes();
  EXPECT_EQ(written.size(), 4u);
  EXPECT_TRUE(written.at(journal::key_of_published("space", "weights", 1)));
  EXPECT_FALSE(written.at(journal::key_of(node_)));
  EXPECT_TRUE(written.at(journal::key_of_departure(node_)));
  EXPECT_TRUE(written.at(journal::key_of_counters()));
}

TEST_F(ClusterTablesTest, ChangesAreThoseSinceTheLastCall) {
  put(job_);
  EXPECT_TRUE(changes().empty()) << "no journal follows";
  tables_.follow();
  put(job_);
  EXPECT_EQ(changes().size(), 1u);
  EXPECT_TRUE(changes().empty());
  tables_.apply(command::TokenChanged{});
  EXPECT_EQ(changes().size(), 1u);
}

TEST_F(ClusterTablesTest, WhatWasRestoredIsNotWrittenAgain) {
  ClusterTables restored;
  restored.follow();
  EXPECT_TRUE(restored.restore(journal::Counters{7, 8, 9}).ok());
  EXPECT_EQ(restored.actors().next_incarnation(), 8u);
  EXPECT_TRUE(restored.changes().empty());
}

TEST_F(ClusterTablesTest, AnEntryThatDoesNotFitIsRefused) {
  ClusterTables restored;
  EXPECT_EQ(restored.restore(journal::ActorRow{}).code(), ErrorCode::kInvalidArgument);
  journal::ActorSpecOf spec;
  spec.spec.actor = ActorId::random();
  spec.job = job_;
  EXPECT_TRUE(restored.restore(spec).ok());
  EXPECT_EQ(restored.end_restore().code(), ErrorCode::kInvalidArgument) << "its job is missing";
}

}  // namespace
}  // namespace runtime
