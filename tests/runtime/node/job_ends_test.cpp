// Ends of jobs: by themselves, stopped, with their node, and what is left then.
#include <csignal>

#include "runtime/control/job_client.h"
#include "runtime/process/session.h"
#include "runtime/transport/blocking.h"
#include "tests/runtime/node/job_fixture.h"
#include "tests/runtime/node/program.h"
#include "tests/support/process_limit.h"

namespace runtime {
namespace {

using std::chrono::seconds;

TEST_F(Job, StopEndsTheWholeGroupAndItsActors) {
  start_head();
  const std::string id =
      submit({"--", "sh", "-c", "sleep 1000 & echo $!; exec " + self() + " driver hold"});
  std::string log;
  ASSERT_TRUE(eventually(
      [&] {
        return (log = starling({"job", "logs", id}).out).find("ready ") != std::string::npos;
      },
      std::chrono::seconds(20)));
  int sleeping = 0, first = 0, second = 0;
  ASSERT_EQ(std::sscanf(log.c_str(), "%d ready %d %d", &sleeping, &first, &second), 3) << log;
  CommandResult stopped = starling({"job", "stop", id.substr(0, 8)});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(job(id)["state"], "stopped");
  EXPECT_TRUE(eventually(
      [&] { return !process_runs(sleeping) && !process_runs(first) && !process_runs(second); }));
  EXPECT_NE(starling({"job", "stop", id}).out.find("ended already"), std::string::npos);
}

// Without a parent, in its own session, with nothing in its environment.
constexpr const char* kDisown =
    "env -i /usr/bin/setsid /bin/sh -c '(/bin/sleep 1000 & echo left $!)'; ";

TEST_F(Job, WhatItDisownedEndsWithIt) {
  start_head();
  for (const char* end : {"exit 3", "kill -KILL $$", "exec sleep 1000"}) {
    const std::string id =
        submit({"--", "sh", "-c", std::string(kDisown) + until("is seen") + end});
    const int left = left_by(id);
    ASSERT_GT(left, 0);
    EXPECT_TRUE(process_runs(left)) << end << ": it has ended too early";
    write(work_.file("is seen"), "");
    if (std::string(end).starts_with("exec"))
      EXPECT_EQ(starling({"job", "stop", id}).code, 0);
    else
      wait_for_end(id);
    EXPECT_TRUE(eventually([&] { return !process_runs(left); })) << end;
    fs::remove(work_.file("is seen"));
  }
}

TEST_F(Job, WhatItDisownedEndsWithAKilledNode) {
  const std::string address = start_head();
  const std::string id = submit({"--", "sh", "-c", std::string(kDisown) + "exec sleep 1000"});
  const int left = left_by(id);
  ASSERT_GT(left, 0);
  const int program = job(id)["pid"];
  ::kill(session_of(address).pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(left) && !process_runs(program); }));
}

TEST_F(Job, WhatItDisownedEndsWhereItKillsItsSupervisor) {
  start_head();
  for (const char* kill : {"kill -KILL $PPID", "kill -KILL $(ps -o ppid= -p $PPID)"}) {
    const std::string id =
        submit({"--", "sh", "-c", std::string(kDisown) + until("is seen") + kill + "; sleep 1000"});
    const int left = left_by(id);
    ASSERT_GT(left, 0);
    EXPECT_TRUE(process_runs(left)) << kill << ": it has ended too early";
    write(work_.file("is seen"), "");
    EXPECT_EQ(wait_for_end(id)["state"], "failed");
    EXPECT_FALSE(process_runs(left)) << kill << ": it has ended already";
    fs::remove(work_.file("is seen"));
  }
}

TEST_F(Job, OneThatStopsItsSupervisorsEndsAndIsStopped) {
  const std::string stop = "kill -STOP $(ps -o ppid= -p $PPID) $PPID; ";
  start_head();
  EXPECT_EQ(starling({"submit", "--", "sh", "-c", stop + "exit 5"}).code, 5);
  const std::string id =
      submit({"--", "sh", "-c", std::string(kDisown) + "while :; do " + stop + "done"});
  const int left = left_by(id);
  ASSERT_GT(left, 0);
  const CommandResult stopped = starling({"job", "stop", id});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(job(id)["state"], "stopped");
  EXPECT_FALSE(process_runs(left)) << "it has ended already";
}

// Each in its own session, with an empty environment.
TEST_F(Job, OneThatStartsProcessesAllTheTimeIsStopped) {
  support::ProcessLimit limit;
  if (!limit.is_group()) GTEST_SKIP() << "needs a pids cgroup";
  if (run_command({"perl", "-e", "1"}).code != 0) GTEST_SKIP() << "needs perl";
  constexpr int kLimit = 130;
  limit.allow(kLimit);
  start_head();
  const std::string storm =
      "use POSIX; while (1) { my $p = fork; if (defined $p && $p == 0) { setsid(); %ENV = (); } "
      "select(undef, undef, undef, 0.002) }";
  // The limit is the job's alone, since what it leaves could keep the node from doing its work.
  const std::string id = submit({"--", "sh", "-c",
                                 "echo $$ > " + limit.file("cgroup.procs") + "; " +
                                     until("is submitted") + "exec perl -e '" + storm + "'"});
  write(work_.file("is submitted"), "");
  ASSERT_TRUE(eventually([&] { return limit.count() == kLimit; }, std::chrono::seconds(20)));
  const CommandResult stopped = starling({"job", "stop", id});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_LE(limit.count(), 1) << "are left";
  EXPECT_TRUE(eventually([&] { return limit.count() == 0; }));
}

TEST_F(Job, IsStoppedThoughItsNodeIsNotBackAtARestartedHead) {
  const std::string head = start_head();
  const SessionInfo node = session_of(start_node(head));
  const std::string id = submit({"--address", node.address, "--", "sleep", "1000"});
  ASSERT_TRUE(eventually([&] { return job(id)["state"] == "running"; }));
  const JobId job_id = *JobId::from_hex(id);
  auto driver = TestDriver::connect(head);
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  const int process = head_of(session_of(head).pid);
  ASSERT_GT(process, 0);
  ::kill(node.pid, SIGSTOP);
  ::kill(process, SIGKILL);
  ASSERT_TRUE(eventually([&] {
    const int again = head_of(session_of(head).pid);
    return again > 0 && again != process;
  }));
  JobClient jobs((*driver)->client());
  Event answered((*driver)->loop());
  Status stopped;
  jobs.cancel(job_id, deadline_after(seconds(20)), [&](Status status) {
    stopped = std::move(status);
    answered.set();
  });
  // Requests reach the head in order, and a refusal is sent at once: before this one's answer.
  const auto found =
      wait_for<JobInfo>((*driver)->loop(), deadline_after(seconds(20)),
                        [&](auto done) { jobs.query(job_id, deadline_after(seconds(20)), done); });
  EXPECT_TRUE(found.ok() && found->running) << found.status().message();
  EXPECT_FALSE(answered.is_set()) << "its node is not back";
  ::kill(node.pid, SIGCONT);
  EXPECT_TRUE((*driver)->loop().run_until(answered, deadline_after(seconds(30))));
  EXPECT_TRUE(stopped.ok()) << stopped.message();
  EXPECT_EQ(wait_for_end(id)["state"], "stopped");
}

// A job behind a wrapper script that knows nothing of signals, as the shell's is.
class WrappedJob : public Job {
 protected:
  void SetUp() override {
    Job::SetUp();
    write(work_.path() / "work.sh",
          "#!/bin/bash\ntrap 'echo told; sleep 1; echo cleaned up; exit 0' TERM\necho ready\n"
          "while :; do sleep 0.1; done\n");
    write(work_.path() / "wrap.sh", "#!/bin/bash\n./work.sh\n");
  }
  void wait_until_ready(const std::string& id) {
    EXPECT_TRUE(eventually(
        [&] {
          return starling({"job", "logs", id}).out.find("ready") != std::string::npos;
        },
        std::chrono::seconds(20)));
  }
  // The shells may have their own words between, on what SIGTERM ended.
  static void expect_all(const std::string& log) {
    EXPECT_TRUE(log.find("ready\n") != log.npos && log.find("told\n") != log.npos &&
                log.ends_with("cleaned up\n"))
        << log;
  }
};

TEST_F(WrappedJob, HasTheTimeToEndThatWasPromised) {
  start_head();
  std::vector<std::vector<std::string>> commands{{"./wrap.sh"}, {"sh", "-c", "./work.sh; true"}};
  if (run_command({"python3", "-c", "pass"}).code == 0)
    commands.push_back({"python3", "-c", "import subprocess; subprocess.run(['./work.sh'])"});
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments{"--working-dir", work_.path(), "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const std::string id = submit(arguments);
    wait_until_ready(id);
    EXPECT_EQ(starling({"job", "stop", id}).code, 0);
    EXPECT_EQ(job(id)["state"], "stopped");
    expect_all(starling({"job", "logs", id}).out);
  }
}

TEST_F(WrappedJob, HasItWhenItsSubmitterIsInterrupted) {
  start_head();
  for (const int number : {SIGINT, SIGKILL}) {
    BackgroundCommand submit(
        {program(), "submit", "--working-dir", work_.path(), "--", "./wrap.sh"});
    submit.wait_for_output("ready\n");
    const Json list = Json::parse(starling({"job", "list", "--json"}).out);
    std::string id;
    for (const Json& job : list) {
      if (job["state"] == "running") id = job["id"];
    }
    ::kill(submit.pid(), number);
    const CommandResult result = submit.finish();
    EXPECT_EQ(result.code, 128 + number);
    EXPECT_EQ(wait_for_end(id)["state"], "stopped");
    expect_all(starling({"job", "logs", id}).out);
    if (number == SIGINT) expect_all(result.err + result.out);
  }
}

TEST_F(WrappedJob, HasItWhenItsNodeIsStopped) {
  const std::string head = start_head();
  const fs::path logs = session_of(head).dir / "logs";
  const std::string id = submit({"--working-dir", work_.path(), "--", "./wrap.sh"});
  wait_until_ready(id);
  EXPECT_EQ(starling({"stop", "--force"}).code, 0);
  expect_all(runtime::read_file(logs / ("job-" + id + ".log"), 1 << 20).value_or(""));
}

// A training saves what it has, which takes its workers and its node.
TEST_F(Job, HasItsClusterUntilItHasEnded) {
  const std::string head = start_head();
  const fs::path logs = session_of(head).dir / "logs";
  write(work_.path() / "work.sh", "#!/bin/bash\ntrap '" + program() +
                                      " list nodes && echo served; exit 0' TERM\necho ready\n"
                                      "while :; do sleep 0.1; done\n");
  const std::string id = submit({"--working-dir", work_.path(), "--", "./work.sh"});
  ASSERT_TRUE(eventually(
      [&] {
        return starling({"job", "logs", id}).out.find("ready") != std::string::npos;
      },
      std::chrono::seconds(20)));
  EXPECT_EQ(starling({"stop", "--force"}).code, 0);
  const std::string log = runtime::read_file(logs / ("job-" + id + ".log"), 1 << 20).value_or("");
  EXPECT_NE(log.find("served"), std::string::npos) << log;
}

TEST_F(Job, AStopNamesTheJobsThatItWouldEndAndLeavesThem) {
  const std::string head = start_head();
  const std::string node = start_node(head);
  const std::string id = submit({"--address", head, "--", "sleep", "1000"});
  for (const std::vector<std::string>& stop :
       std::vector<std::vector<std::string>>{{"stop"}, {"stop", "--address", head}}) {
    const CommandResult refused = starling(stop);
    EXPECT_EQ(refused.code, 1);
    for (const std::string& part :
         {std::string("a job runs at "), id.substr(0, 8), std::string("sleep 1000"),
          std::string("--force"), std::string("starling job stop")})
      EXPECT_NE(refused.err.find(part), std::string::npos) << part << " in: " << refused.err;
    EXPECT_EQ(job(id)["state"], "running");
  }
  // Of a node alone its own jobs count.
  EXPECT_EQ(starling({"stop", "--address", node}).code, 0);
  const CommandResult forced = starling({"stop", "--force"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_NE(forced.out.find("ending job " + id.substr(0, 8) + "  sleep 1000"), std::string::npos)
      << forced.out;
  EXPECT_TRUE(running_sessions().empty());
}

TEST_F(Job, AStopEndsNothingWhileTheHeadDoesNotSayWhatRuns) {
  const std::string head = start_head();
  const std::string id = submit({"--address", head, "--", "sleep", "1000"});
  const int process = child_of(session_of(head).pid, "head");
  ASSERT_GT(process, 0);
  ::kill(process, SIGSTOP);
  const CommandResult refused = starling({"stop"});
  ::kill(process, SIGCONT);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("whether jobs run at " + head), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(job(id)["state"], "running");
}

TEST_F(Job, AStopTakesNoProgramThatHasJustEndedForOneThatRuns) {
  for (int i = 0; i < 5; ++i) {
    start_head();
    EXPECT_EQ(starling({"submit", "--", "true"}).code, 0);
    const CommandResult stopped = starling({"stop"});
    EXPECT_EQ(stopped.code, 0) << stopped.err;
  }
}

TEST_F(Job, ADeadNodeFailsItsJobsByName) {
  const std::string head = start_head();
  const std::string node = start_node(head);
  const std::string id = submit({"--address", node, "--", "sleep", "1000"});
  const SessionInfo session = session_of(node);
  ::kill(session.pid, SIGKILL);
  Json ended;
  EXPECT_TRUE(eventually(
      [&] {
        return (ended = Json::parse(
                    starling({"job", "status", id, "--json", "--address", head}).out))["state"] ==
               "failed";
      },
      std::chrono::seconds(20)));
  EXPECT_NE(ended["reason"].get<std::string>().find("node " + session.node.short_hex()),
            std::string::npos)
      << ended;
  EXPECT_TRUE(ended["exit_code"].is_null());
}

TEST_F(Job, ANodeThatIsKilledLeavesNothingOfItsJobs) {
  const std::string address = start_head();
  const std::string id = submit({"--", "sh", "-c", "sleep 1000 & echo $!; wait"});
  std::string log;
  ASSERT_TRUE(eventually(
      [&] {
        return (log = starling({"job", "logs", id}).out).ends_with("\n");
      },
      std::chrono::seconds(20)));
  const int sleeping = std::stoi(log);
  ASSERT_TRUE(process_runs(sleeping));
  ::kill(session_of(address).pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(sleeping); }));
  EXPECT_TRUE(eventually([&] { return running_sessions().empty(); }));
}

}  // namespace
}  // namespace runtime
