// The command lines of `starling submit`, `logs` and `job`.
#include <nlohmann/json.hpp>

#include "tests/placement/app/command_line.h"

namespace placement {
namespace {

namespace control = runtime::control;

class JobLinesTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  JobLinesTest() {
    job_.job = runtime::JobId::random();
    job_.node = cluster_.node().id;
    job_.command = "./train";
    job_.pid = 12;
    job_.submitted = true;
    job_.running = false;
    job_.outcome = runtime::JobOutcome::kSucceeded;
    job_.end.text = "exited with code 0";
    job_.end.exit_code = 0;
    cluster_.state.jobs = {job_};
    cluster_.on<control::QueryJob>([this](const auto&) { return job_; });
    cluster_.on<control::OfferFiles>([](const auto&) { return control::FilesWanted(); });
    cluster_.on<control::SubmitJob>([this](const control::SubmitJob& request) {
      submitted_ = request;
      return job_.job;
    });
    cluster_.on<control::ReadLog>([](const control::ReadLog& request) {
      control::LogChunk chunk;
      if (request.offset == 0) chunk.text = request.name + "\n";
      chunk.next_offset = 1;
      return chunk;
    });
  }
  /// `words` end with what the command is, and begin with its name.
  Said say(Command (*add)(CLI::App& app), Words words, std::size_t address_at = 1) const {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(address_at),
                 {"--address", cluster_.address()});
    return said_to(add, words);
  }

  FakeCluster cluster_;
  runtime::JobInfo job_;
  control::SubmitJob submitted_;
};

TEST_F(JobLinesTest, WhatStandsBehindTheProgramIsItsOwn) {
  for (const Words& end : {Words{"train", "--detach", "-f", "[1,2]", "--"},
                           Words{"--", "--detach", "--env", "=", "x="}}) {
    Words words{"submit", "--detach"};
    words.insert(words.end(), end.begin(), end.end());
    EXPECT_EQ(say(add_submit, words).code, 0) << end[0];
    Words program = end;
    if (program[0] == "--") program.erase(program.begin());
    EXPECT_EQ(submitted_.argv, program);
  }
}

TEST_F(JobLinesTest, SubmitsWhatTheOptionsSay) {
  control::QueueJob queued;
  cluster_.on<control::QueueJob>([&](const control::QueueJob& request) {
    queued = request;
    runtime::GroupState group;
    group.placed = true;
    group.nodes = {cluster_.node().id};
    return group;
  });
  const Said said = say(add_submit, {"submit", "--detach", "--env", "A=[1,2]", "--env",
                                     "B=", "--num-cpus", "2", "--gpus", "1", "--resources",
                                     R"({"disk": 3})", "--label", "zone=a", "--", "train"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, job_.job.hex() + "\n");
  EXPECT_EQ(submitted_.argv, (Words{"train"}));
  EXPECT_EQ(submitted_.env, (runtime::Environment{{"A", "[1,2]"}, {"B", ""}}));
  EXPECT_TRUE(submitted_.detached);
  EXPECT_EQ(queued.resources, (runtime::ResourceMap{{"CPU", 2}, {"GPU", 1}, {"disk", 3}}));
  EXPECT_EQ(queued.labels, (runtime::Labels{{"zone", "a"}}));
  const Words labelled{"submit",  "--detach", "--num-cpus", "1",
                       "--label", "zone=a",   "train",      "zone=b"};
  EXPECT_EQ(say(add_submit, labelled).code, 0);
  EXPECT_EQ(submitted_.argv, (Words{"train", "zone=b"})) << "an option has one word";
  EXPECT_EQ(say(add_submit, {"submit", "--detach", "--env", "A=1", "train"}).code, 0);
  EXPECT_EQ(submitted_.argv, (Words{"train"}));
  expect_refused(say(add_submit, {"submit", "--working-dir", "/nowhere", "train"}), 1,
                 {"/nowhere"});
  expect_refused(say(add_submit, {"submit", "--gpus", "1", "--place-timeout", "soon", "train"}), 1,
                 {"--place-timeout", "soon"});
  expect_refused(say(add_submit, {"submit"}), 1, {"no command to run"});
}

TEST_F(JobLinesTest, EachCommandOfJobIsItsOwn) {
  const std::string id = job_.job.hex();
  const auto job = [&](const Words& words) {
    Words all{"job"};
    all.insert(all.end(), words.begin(), words.end());
    return say(add_job, all, 2).out;
  };
  expect_said(job({"list"}), {job_.job.short_hex() + "  succeeded"});
  EXPECT_EQ(nlohmann::json::parse(job({"list", "--json"})).at(0).at("id"), id);
  expect_said(job({"status", id}), {"job " + id + ": succeeded", "exit code 0"});
  EXPECT_EQ(nlohmann::json::parse(job({"status", id, "--json"})).at("id"), id);
  EXPECT_EQ(job({"logs", id}), "job-" + id + ".log\n");
  expect_said(job({"stop", id}), {"has ended already"});
  for (const char* command : {"status", "logs", "stop"})
    expect_refused(said_to(add_job, {"job", command}), 2, {"id"});
}

TEST_F(JobLinesTest, LogsAreTheNodesUnlessSomethingIsNamed) {
  EXPECT_EQ(say(add_logs, {"logs"}).out, "\n") << "the log without a name";
  EXPECT_EQ(say(add_logs, {"logs", job_.job.hex()}).out, "job-" + job_.job.hex() + ".log\n");
  EXPECT_EQ(say(add_logs, {"logs", "-f", job_.job.short_hex()}).out,
            "job-" + job_.job.hex() + ".log\n")
      << "until the job has ended, as it has";
}

}  // namespace
}  // namespace placement
