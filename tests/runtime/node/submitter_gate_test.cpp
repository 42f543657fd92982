#include "runtime/node/submitter_gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_failure.h"

namespace runtime {
namespace {

using support::expect_failure;

class SubmitterGateTest : public ::testing::Test {
 protected:
  Status check(ControlRequest::Body body) const {
    return check_submitter({{}, std::chrono::seconds(1), std::move(body)},
                           [this](JobId job) { return job == own_; });
  }
  static JobInfo job_of(const std::string& user) {
    JobInfo job;
    job.job = JobId::random();
    job.user = user;
    job.command = "./train --key secret";
    job.end = {"exited with code 3", 12, 3, 0, "a backtrace"};
    job.outcome = JobOutcome::kFailed;
    job.place = GroupId::random();
    return job;
  }
  static void expect_hidden(const JobInfo& job) {
    EXPECT_EQ(job.command, "");
    EXPECT_EQ(job.end.text, "");
    EXPECT_EQ(job.end.output_tail, "");
    EXPECT_TRUE(job.place.is_none());
    EXPECT_EQ(job.outcome, JobOutcome::kFailed) << "that is no secret";
  }

  const JobId own_ = JobId::random();
};

TEST_F(SubmitterGateTest, WhatSubmittingTakesIsAllowed) {
  for (const ControlRequest::Body& body : std::vector<ControlRequest::Body>{
           control::SubmitJob{}, control::QueueJob{}, control::OfferFiles{}, control::StoreFile{},
           control::QueryJob{}, control::QueryCluster{}, control::CancelJob{own_}})
    EXPECT_TRUE(check(body).ok()) << body.index();
}

TEST_F(SubmitterGateTest, AllElseNeedsTheClustersToken) {
  for (const ControlRequest::Body& body : std::vector<ControlRequest::Body>{
           control::CancelJob{JobId::random()}, control::StopNode{}, control::CreateActor{},
           control::KvGet{"key"}, control::ReadLog{}, control::ChangeToken{}, control::DrainNode{},
           ObjectControl{control::ListObjects{}}, ObserveControl{control::ListWorkers{}}})
    expect_failure(check(body), ErrorCode::kInvalidArgument, {"the cluster's token"});
}

TEST_F(SubmitterGateTest, AGroupIsSeenByItsIdAlone) {
  EXPECT_TRUE(check(control::QueryGroup{GroupId::random(), "", "", true}).ok());
  EXPECT_FALSE(check(control::QueryGroup{GroupId::random(), "gang", "", true}).ok());
}

TEST_F(SubmitterGateTest, OtherUsersJobsAreHidden) {
  ControlAnswer answer = job_of("alice");
  hide_from_submitter(answer, "bob");
  expect_hidden(std::get<JobInfo>(answer));
  answer = job_of("");
  hide_from_submitter(answer, std::nullopt);
  expect_hidden(std::get<JobInfo>(answer));
  const JobInfo own = job_of("bob");
  answer = own;
  hide_from_submitter(answer, "bob");
  EXPECT_TRUE(std::get<JobInfo>(answer) == own);
}

TEST_F(SubmitterGateTest, OfTheClusterWhatOthersWroteIsHidden) {
  ClusterState cluster;
  cluster.jobs = {job_of("alice"), job_of("bob")};
  const JobInfo own = cluster.jobs[1];
  cluster.actors.resize(1);
  cluster.actors[0].death = {"threw: a secret", 12, -1, 11, "a backtrace"};
  cluster.groups.resize(1);
  ControlAnswer answer = cluster;
  hide_from_submitter(answer, "bob");
  const auto& seen = std::get<ClusterState>(answer);
  expect_hidden(seen.jobs.at(0));
  EXPECT_TRUE(seen.jobs.at(1) == own);
  EXPECT_EQ(seen.actors.at(0).death.text, "");
  EXPECT_EQ(seen.actors.at(0).death.output_tail, "");
  EXPECT_EQ(seen.actors.at(0).death.signal, 11);
  EXPECT_TRUE(seen.groups.empty());
}

}  // namespace
}  // namespace runtime
