#include "placement/app/cli_jobs.h"

#include "tests/placement/app/fake_cluster.h"
#include "tests/support/expect_failure.h"

namespace placement {
namespace {

using runtime::ErrorCode;
using runtime::JobInfo;
using runtime::JobOutcome;
using support::expect_failure;
namespace control = runtime::control;

class JobCommandsTest : public ::testing::Test {
 protected:
  using Json = nlohmann::ordered_json;

  JobCommandsTest() {
    cluster_.on<control::QueryJob>([this](const control::QueryJob& request) {
      return find_job(cluster_.state, request.job.hex());
    });
    job_.job = *runtime::JobId::from_hex("7f3a" + std::string(28, '0'));
    job_.node = cluster_.node().id;
    job_.command = "./train fast";
    job_.pid = 12;
    job_.submitted = true;
  }
  void end_job(JobOutcome outcome, const std::string& text, int exit_code, int signal = 0) {
    job_.running = false;
    job_.outcome = outcome;
    job_.end.text = text;
    job_.end.exit_code = exit_code;
    job_.end.signal = signal;
  }
  void show() { cluster_.state.jobs = {job_}; }
  /// It waits for two CPUs.
  runtime::GroupState& wait_for_a_place() {
    job_.pid = 0;
    job_.node = {};
    job_.place = runtime::GroupId::random();
    runtime::GroupState group;
    group.spec.group = job_.place;
    group.spec.bundles = {{{"CPU", 2}}};
    group.pending_reason = "no node has 2 CPUs";
    return cluster_.state.groups.emplace_back(group);
  }

  FakeCluster cluster_;
  JobInfo job_;
};

TEST_F(JobCommandsTest, AJobIsNamedByFirstDigitsThatNoOtherHas) {
  JobInfo other;
  other.job = *runtime::JobId::from_hex("7f3b" + std::string(28, '0'));
  cluster_.state.jobs = {job_, other};
  const auto found = find_job(cluster_.state, "7f3b");
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->job, other.job);
  expect_failure(find_job(cluster_.state, "7f3").status(), ErrorCode::kInvalidArgument,
                 {"'7f3' may be job " + job_.job.hex() + ", " + other.job.hex() + ";"});
  expect_failure(find_job(cluster_.state, "7f4").status(), ErrorCode::kNotFound,
                 {"'7f4'", "the nearest: ", job_.job.hex()});
  EXPECT_EQ(find_job(cluster_.state, "").status().code(), ErrorCode::kNotFound)
      << "which is not all of them";
  cluster_.state.jobs.clear();
  expect_failure(find_job(cluster_.state, "7f3").status(), ErrorCode::kNotFound,
                 {"starling job list"});
}

TEST_F(JobCommandsTest, TheExitCodeIsTheOneOfSubmit) {
  EXPECT_EQ(exit_code_of(job_), std::nullopt) << "it runs";
  end_job(JobOutcome::kFailed, "killed by SIGKILL", -1, 9);
  EXPECT_EQ(exit_code_of(job_), 137);
  end_job(JobOutcome::kFailed, "exited with code 3", 3);
  EXPECT_EQ(exit_code_of(job_), 3);
  end_job(JobOutcome::kFailed, "its node was lost", -1);
  EXPECT_EQ(exit_code_of(job_), std::nullopt) << "not known";
}

TEST_F(JobCommandsTest, ScriptsFindTheKeysThatTheyRelyOn) {
  const Json json = to_json(job_, cluster_.state);
  for (const char* key : {"id", "command", "state", "exit_code", "reason", "pending_reason",
                          "resources", "node", "pid", "submitted", "user", "started", "ended"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["exit_code"], Json());
  EXPECT_EQ(json["resources"], Json::object());
  EXPECT_EQ(json["node"], cluster_.node().id.hex());
}

TEST_F(JobCommandsTest, AJobThatHasNotBegunSaysWhatItWaitsFor) {
  runtime::GroupState& place = wait_for_a_place();
  const Json waits = to_json(job_, cluster_.state);
  EXPECT_EQ(waits["state"], "pending");
  EXPECT_EQ(waits["pending_reason"], "no node has 2 CPUs");
  EXPECT_EQ(waits["resources"]["CPU"], 2);
  EXPECT_EQ(waits["started"], "");
  EXPECT_EQ(waits["node"], "");
  place.placed = true;
  place.nodes = {cluster_.node().id};
  const std::string reason = to_json(job_, cluster_.state)["pending_reason"];
  expect_said(reason, {"node " + cluster_.node().id.short_hex() + " has what it takes",
                       "the command that submitted it"});
  job_.pid = 12;
  EXPECT_EQ(to_json(job_, cluster_.state)["pending_reason"], "");
}

TEST_F(JobCommandsTest, TheStatusOfAFailureHasTheEndOfItsLog) {
  end_job(JobOutcome::kFailed, "exited with code 3", 3);
  job_.end.output_tail = "Traceback\n\x1b[2Jline 7";
  show();
  const Said said = said_by([&] { return job_status_command(cluster_.address(), "7f", false); });
  EXPECT_EQ(said.code, 0) << said.err;
  expect_said(said.out,
              {"job " + job_.job.hex() + ": failed, exited with code 3", "command  ./train fast",
               "exit code 3", "starling job logs 7f3a0000", "Traceback\n\\x1b[2Jline 7"});
  const Said json = said_by([&] { return job_status_command(cluster_.address(), "7f", true); });
  EXPECT_EQ(Json::parse(json.out)["log_tail"], job_.end.output_tail) << "for a parser";
}

TEST_F(JobCommandsTest, AListHasTheEndedOnesToo) {
  end_job(JobOutcome::kStopped, "ended by request", -1, 15);
  JobInfo runs;
  runs.job = runtime::JobId::random();
  runs.command = "./eval\nall";
  runs.pid = 13;
  cluster_.state.jobs = {job_, runs};
  const Said said = said_by([&] { return job_list_command(cluster_.address(), false); });
  EXPECT_EQ(said.code, 0) << said.err;
  expect_said(said.out, {"7f3a0000  stopped", "./train fast  ended by request",
                         runs.job.short_hex() + "  running", "./eval\\nall"});
  const Said json = said_by([&] { return job_list_command(cluster_.address(), true); });
  EXPECT_EQ(Json::parse(json.out),
            Json::array({to_json(job_, cluster_.state), to_json(runs, cluster_.state)}));
  const Said running = said_by([&] { return print_jobs(cluster_.state, false), 0; });
  EXPECT_EQ(running.out.find("7f3a0000"), std::string::npos) << running.out;
}

TEST_F(JobCommandsTest, StopWaitsForTheEnd) {
  show();
  std::vector<runtime::JobId> cancelled;
  int looks = 0;
  cluster_.on<control::CancelJob>([&](const control::CancelJob& request) {
    cancelled.push_back(request.job);
    return std::monostate();
  });
  cluster_.on<control::QueryJob>([&](const auto&) {
    if (++looks == 3) end_job(JobOutcome::kStopped, "ended by request", -1, 15);
    return job_;
  });
  const Said said = said_by([&] { return job_stop_command(cluster_.address(), "7f3a"); });
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "job 7f3a0000 stopped: ended by request\n");
  EXPECT_EQ(cancelled, (std::vector<runtime::JobId>{job_.job}));
  EXPECT_EQ(looks, 3);
}

TEST_F(JobCommandsTest, WhatHasEndedIsNotStoppedAgain) {
  end_job(JobOutcome::kSucceeded, "exited with code 0", 0);
  show();
  cluster_.on<control::CancelJob>([](const auto&) {
    ADD_FAILURE() << "it is asked to end";
    return std::monostate();
  });
  const Said said = said_by([&] { return job_stop_command(cluster_.address(), "7f3a"); });
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "job 7f3a0000 has ended already: succeeded, exited with code 0\n");
}

TEST_F(JobCommandsTest, AnUnknownOneIsAnErrorOfEachCommand) {
  show();
  const std::string address = cluster_.address();
  for (const Said& said : {said_by([&] { return job_status_command(address, "8", false); }),
                           said_by([&] { return job_logs_command(address, "8", false); }),
                           said_by([&] { return job_stop_command(address, "8"); })}) {
    EXPECT_EQ(said.code, 1);
    EXPECT_EQ(said.out, "");
    expect_said(said.err, {"error: no job has an id that begins with '8'", job_.job.hex()});
  }
}

}  // namespace
}  // namespace placement
