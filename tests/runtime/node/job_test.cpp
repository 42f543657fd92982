// Jobs on real nodes: submitted with their folder, detached, stopped, killed with their node, and
// remembered by a head that is killed.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/control/control.h"
#include "runtime/control/job_client.h"
#include "runtime/control/node_client.h"
#include "runtime/process/file_util.h"
#include "runtime/process/session.h"
#include "runtime/transport/blocking.h"
#include "tests/runtime/node/job_fixture.h"

namespace runtime {
namespace {

// Files and folders, all the way down; -1 where what is counted is being removed meanwhile.
int entries_below(const fs::path& folder) {
  std::error_code error;
  int count = 0;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    ++count;
  return error ? -1 : count;
}

TEST_F(Job, RunsDetachedAndIsRemembered) {
  start_head();
  const std::string id =
      submit({"--env", "A=b", "--", "sh", "-c", "echo out $A; echo err >&2; exit 3"});
  EXPECT_EQ(id.size(), 32u);
  Json ended = wait_for_end(id);
  EXPECT_EQ(ended["state"], "failed");
  EXPECT_EQ(ended["exit_code"], 3);
  EXPECT_EQ(ended["log_tail"], "out b\nerr");
  EXPECT_EQ(starling({"job", "logs", id.substr(0, 6)}).out, "out b\nerr\n");
  CommandResult status = starling({"job", "status", id});
  EXPECT_NE(status.out.find("exit code 3"), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("out b\nerr\n"), std::string::npos) << status.out;
  const std::string good = submit({"--", "true"});
  EXPECT_EQ(wait_for_end(good)["state"], "succeeded");
  Json list = Json::parse(starling({"list", "jobs", "--json"}).out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(Json::parse(starling({"job", "list", "--json"}).out), list);
  for (const Json& job : list) {
    for (const char* field : {"id", "command", "state", "exit_code"})
      EXPECT_TRUE(job.contains(field)) << field;
  }
}

TEST_F(Job, HasItsArgumentsAsTheyWereTyped) {
  const std::string head = start_head();
  const CommandResult result =
      starling({"submit", "--env", "E=[x,y]", "--", "sh", "-c", "printf '<%s>' \"$E\" \"$@\"", "sh",
                "[a,b]", "[]", "[INST] hi, you [/INST]", "", "--", "{}"});
  EXPECT_EQ(result.out, "<[x,y]><[a,b]><[]><[INST] hi, you [/INST]><><--><{}>") << result.err;
}

TEST_F(Job, HasTheClusterInItsEnvironmentAndNotOnItsCommandLine) {
  const std::string address = start_head();
  CommandResult result =
      starling({"submit", "--", "sh", "-c",
                "echo $STARLING_ADDRESS; test -z \"$STARLING_TOKEN\" -a -n \"$(cat "
                "$STARLING_TOKEN_FILE)\" && echo same"});
  EXPECT_EQ(result.out, address + "\nsame\n");
  const SessionInfo session = session_of(address);
  const std::string token = *runtime::read_file(session.dir.parent_path() / "token", 1000);
  ASSERT_GE(token.size(), 32u);
  const std::string held = submit({"--", self(), "driver", "hold"});
  ASSERT_TRUE(eventually(
      [&] {
        return starling({"job", "logs", held}).out.starts_with("ready");
      },
      std::chrono::seconds(20)));
  for (const auto& process : fs::directory_iterator("/proc")) {
    auto words = runtime::read_file(process.path() / "cmdline", 4 << 20);
    EXPECT_TRUE(!words.ok() || words->find(token) == std::string::npos) << process.path();
  }
  for (const auto& log : fs::directory_iterator(session.dir / "logs"))
    EXPECT_EQ(runtime::read_file(log.path(), 64 << 20)->find(token), std::string::npos)
        << log.path();
}

TEST_F(Job, UnknownIdsAreRefusedWithTheNearest) {
  start_head();
  const std::string id = submit({"--", "true"});
  std::string wrong = id;
  wrong[3] = wrong[3] == '0' ? '1' : '0';
  for (const char* command : {"status", "logs", "stop"}) {
    CommandResult result = starling({"job", command, wrong});
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.err.find(id), std::string::npos) << result.err;
  }
  EXPECT_NE(starling({"logs", wrong}).err.find(id), std::string::npos);
  submit({"--", "true"});
  EXPECT_EQ(starling({"job", "status", ""}).code, 1);
}

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

// Without a parent, in a session of its own, with nothing in its environment.
constexpr const char* kDisown =
    "env -i /usr/bin/setsid /bin/sh -c '(/bin/sleep 1000 & echo left $!)'; ";

TEST_F(Job, WhatItDisownedEndsWithIt) {
  start_head();
  for (const char* end : {"exit 3", "kill -KILL $$", "exec sleep 1000"}) {
    const std::string id = submit({"--", "sh", "-c", std::string(kDisown) + "sleep 0.3; " + end});
    std::string log;
    ASSERT_TRUE(eventually(
        [&] {
          return (log = starling({"job", "logs", id}).out).find("left ") != log.npos;
        },
        std::chrono::seconds(20)));
    int left = 0;
    ASSERT_EQ(std::sscanf(log.c_str(), "left %d", &left), 1) << log;
    if (std::string(end).starts_with("exec"))
      EXPECT_EQ(starling({"job", "stop", id}).code, 0);
    else
      wait_for_end(id);
    EXPECT_TRUE(eventually([&] { return !process_runs(left); })) << end;
  }
}

TEST_F(Job, WhatItDisownedEndsWithAKilledNode) {
  const std::string address = start_head();
  const std::string id = submit({"--", "sh", "-c", std::string(kDisown) + "exec sleep 1000"});
  std::string log;
  ASSERT_TRUE(eventually(
      [&] {
        return (log = starling({"job", "logs", id}).out).find("left ") != log.npos;
      },
      std::chrono::seconds(20)));
  int left = 0;
  ASSERT_EQ(std::sscanf(log.c_str(), "left %d", &left), 1) << log;
  const int program = job(id)["pid"];
  ::kill(session_of(address).pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(left) && !process_runs(program); }));
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

TEST_F(Job, AStopTakesNoProgramThatHasJustEndedForOneThatRuns) {
  for (int i = 0; i < 5; ++i) {
    start_head();
    EXPECT_EQ(starling({"submit", "--", "true"}).code, 0);
    const CommandResult stopped = starling({"stop"});
    EXPECT_EQ(stopped.code, 0) << stopped.err;
  }
}

TEST_F(Job, ItsFolderIsShippedCachedAndRemoved) {
  start_head();
  write(work_.path() / "run.sh", "#!/bin/sh\ncat sub/data; pwd; echo made > made; exit 4\n");
  write(work_.path() / "sub/data", "hello\n");
  write(work_.path() / "secret", "no");
  write(work_.path() / ".starlingignore", "secret\n");
  CommandResult result =
      starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"});
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_TRUE(result.out.starts_with("hello\n" + folders().string())) << result.out;
  EXPECT_FALSE(fs::exists(work_.path() / "made"));  // it ran in a copy
  EXPECT_TRUE(
      eventually([&] { return entries_below(folders()) == 2; }));  // the node's folder and its lock
  // The second time nothing is sent: what is cached stays as it is.
  std::map<std::string, ino_t> cached;
  const auto look = [&] {
    std::map<std::string, ino_t> found;
    for (const auto& file : fs::directory_iterator(cache_folder_.path() / "files")) {
      struct stat info;
      if (::stat(file.path().c_str(), &info) == 0) found[file.path().filename()] = info.st_ino;
    }
    return found;
  };
  cached = look();
  EXPECT_EQ(cached.size(), 3u);
  EXPECT_EQ(starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"}).code, 4);
  EXPECT_EQ(look(), cached);
  write(work_.path() / "sub/data", "changed\n");
  EXPECT_TRUE(starling({"submit", "--working-dir", work_.path().string(), "--", "./run.sh"})
                  .out.starts_with("changed\n"));
}

TEST_F(Job, AProgramFromElsewhereIsShippedBesideIt) {
  start_head();
  write(work_.path() / "x", "in the folder\n");
  support::TemporaryFolder elsewhere;
  write(elsewhere.path() / "tool", "#!/bin/sh\necho $0; cat x\n");
  CommandResult result =
      starling({"submit", "--working-dir", work_.path().string(), "--", elsewhere.file("tool")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("in the folder"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(folders().string()), std::string::npos) << result.out;
  // A driver with its actors, too.
  CommandResult driver = starling(
      {"submit", "--working-dir", work_.path().string(), "--", self(), "driver", "exit", "5"});
  EXPECT_EQ(driver.code, 5) << driver.err;
}

TEST_F(Job, ActorsOnOtherNodesHaveItsFolderToo) {
  const std::string head = start_head({"--num-cpus", "1"});
  const std::string node = start_node(head, {"--num-cpus", "1"});
  write(work_.path() / "sub/data", "data\n");
  write(work_.path() / "twice", "data\n");
  write(work_.path() / "empty", "");
  CommandResult result = starling({"submit", "--address", head, "--working-dir",
                                   work_.path().string(), "--", self(), "driver", "folders"});
  ASSERT_EQ(result.code, 0) << result.out << result.err;
  // Where its two actors ran, on two nodes.
  std::istringstream lines(result.out);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("runs in "); at != std::string::npos)
      seen.insert(line.substr(at + 8));
  }
  EXPECT_EQ(seen.size(), 2u) << result.out;
  for (const std::string& folder : seen)
    EXPECT_TRUE(folder.starts_with(folders().string()) &&
                folder.ends_with("/work: 3 entries, data"))
        << folder;
  EXPECT_TRUE(
      eventually([&] { return entries_below(folders()) == 4; }));  // two nodes' folders and locks
}

TEST_F(Job, AFolderThatIsTooLargeNamesItsLargestFiles) {
  start_head({"--job-size-limit", "1000"});
  write(work_.path() / "huge.bin", std::string(2000, 'x'));
  write(work_.path() / "small", "x");
  CommandResult result = starling({"submit", "--working-dir", work_.path().string(), "--", "true"});
  EXPECT_EQ(result.code, 1);
  for (const char* part : {"huge.bin (1.953 KiB)", "--job-size-limit", ".starlingignore"})
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(Json::parse(starling({"list", "jobs", "--json"}).out).size(), 0u);
  CommandResult missing =
      starling({"submit", "--working-dir", work_.file("nowhere"), "--", "true"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("does not exist"), std::string::npos);
}

TEST_F(Job, RecordsSurviveTheHead) {
  const std::string address = start_head();
  const std::string ended = submit({"--", "sh", "-c", "echo why; exit 9"});
  wait_for_end(ended);
  const std::string other = submit({"--", "sh", "-c", "sleep 1; exit 6"});
  const std::string running = submit({"--", "sleep", "1000"});
  int head = 0;
  ASSERT_TRUE(eventually([&] { return (head = head_of(session_of(address).pid)) > 0; }));
  ::kill(head, SIGKILL);
  Json known = job(ended);
  EXPECT_EQ(known["state"], "failed");
  EXPECT_EQ(known["exit_code"], 9);
  EXPECT_EQ(known["log_tail"], "why");
  EXPECT_EQ(job(running)["state"], "running");
  EXPECT_EQ(wait_for_end(other)["exit_code"], 6);
  // One that ends while there is no head.
  const std::string third = submit({"--", "sh", "-c", "sleep 0.3; exit 7"});
  ASSERT_TRUE(eventually([&] { return (head = head_of(session_of(address).pid)) > 0; }));
  ::kill(head, SIGKILL);
  Json late = wait_for_end(third);
  EXPECT_EQ(late["exit_code"], 7) << late;
  EXPECT_EQ(starling({"job", "stop", running}).code, 0);
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
}

TEST_F(Job, ADriverThatIsSimplyRunIsOneToo) {
  const std::string address = start_head();
  support::ScopedVariable variable("STARLING_ADDRESS", address.c_str());
  EXPECT_EQ(run_command({self(), "driver", "exit", "3"}).code, 3);
  Json list;
  ASSERT_TRUE(eventually([&] {
    return (list = Json::parse(starling({"job", "list", "--json"}).out)).size() == 1 &&
           list[0]["state"] != "running";
  }));
  EXPECT_EQ(list[0]["state"], "failed");
  EXPECT_EQ(list[0]["exit_code"], 3);
  EXPECT_EQ(list[0]["submitted"], false);
  EXPECT_EQ(starling({"job", "logs", list[0]["id"].get<std::string>()}).code,
            1);  // it wrote to where it was run
  // It can be stopped from afar.
  BackgroundCommand driver({self(), "driver", "hold"});
  driver.wait_for_output("ready ");
  std::string id;
  for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out)) {
    if (job["state"] == "running") id = job["id"];
  }
  EXPECT_EQ(starling({"job", "stop", id}).code, 0);
  EXPECT_EQ(driver.finish().code, 128 + SIGTERM);
  EXPECT_EQ(job(id)["state"], "stopped");
  // And one that is killed has failed.
  BackgroundCommand killed({self(), "driver", "hold"});
  killed.wait_for_output("ready ");
  ::kill(killed.pid(), SIGKILL);
  killed.finish();
  EXPECT_TRUE(eventually([&] {
    for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out)) {
      if (job["pid"] == killed.pid() ||
          job["reason"].get<std::string>().find("killed, or crashed") != std::string::npos)
        return job["state"] == "failed";
    }
    return false;
  }));
}

TEST_F(Job, MayRunDriversOneAfterAnother) {
  start_head();
  CommandResult result =
      starling({"submit", "--", "sh", "-c",
                self() + " driver exit 0; " + self() + " driver exit 4; echo $?; exit 2"});
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_TRUE(result.out.ends_with("4\n")) << result.out;
  Json list = Json::parse(starling({"job", "list", "--json"}).out);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["exit_code"], 2);
  EXPECT_TRUE(list[0]["command"].get<std::string>().starts_with("sh -c"));
}

TEST_F(Job, ASubmitterThatDoesNotReadHoldsUpNothingButItsJob) {
  start_head();
  BackgroundCommand submit({program(), "submit", "--", "sh", "-c", "echo first; exec yes"});
  submit.wait_for_output("first");
  ::kill(submit.pid(), SIGSTOP);
  const std::string id = Json::parse(starling({"job", "list", "--json"}).out)[0]["id"];
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(starling({"submit", "--", "echo", "others go on"}).out, "others go on\n");
  CommandResult stopped = starling({"job", "stop", id});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(job(id)["state"], "stopped");
  ::kill(submit.pid(), SIGCONT);
}

TEST_F(Job, BinaryOutputIsKeptAsItIs) {
  start_head();
  const std::string id =
      submit({"--", "sh", "-c", "head -c 300000 /dev/urandom | tee out.bin", "x"});
  wait_for_end(id);
  const fs::path written = fs::current_path() / "out.bin";
  EXPECT_EQ(starling({"job", "logs", id}).out, *runtime::read_file(written, 1 << 20));
  fs::remove(written);
}

TEST_F(Job, LogsSayWhatWasRotatedAway) {
  start_head();
  const std::string short_one = submit({"--", "echo", "all of it"});
  wait_for_end(short_one);
  EXPECT_EQ(starling({"job", "logs", short_one}).err, "");
  constexpr std::uint64_t kBytes = 200'000'000;
  const std::string id =
      submit({"--", "sh", "-c", "yes 123456789abcdef | head -c " + std::to_string(kBytes)});
  wait_for_end(id);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"job", "logs", id}, {"logs", id}, {"job", "logs", "-f", id}}) {
    CommandResult logs = starling(command);
    EXPECT_EQ(logs.code, 0) << logs.err;
    EXPECT_LT(logs.out.size(), kBytes);
    EXPECT_GT(logs.out.size(), kBytes / 4);
    EXPECT_NE(logs.err.find("note: the log of job " + id.substr(0, 8) + " begins after its first " +
                            std::to_string(kBytes - logs.out.size()) + " bytes: "),
              std::string::npos)
        << logs.err;
    EXPECT_EQ(std::count(logs.err.begin(), logs.err.end(), '\n'), 1) << logs.err;
  }
}

TEST_F(Job, LogsAreFollowedToItsEnd) {
  start_head();
  const std::string id =
      submit({"--", "sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.3; done"});
  CommandResult followed = starling({"job", "logs", "-f", id});
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_EQ(followed.out, "line 1\nline 2\nline 3\n");
}

/// Jobs that reserve something.
class JobPlaceTest : public Job {
 protected:
  Json list(const std::string& what) {
    CommandResult result = starling({"list", what, "--json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? Json::parse(result.out) : Json::array();
  }
  /// Submits in the background; waits until it is known what the job waits for.
  std::unique_ptr<BackgroundCommand> submit_waiting(std::vector<std::string> arguments, Json& job) {
    const std::size_t known = list("jobs").size();
    arguments.insert(arguments.begin(), {program(), "submit"});
    auto command = std::make_unique<BackgroundCommand>(std::move(arguments));
    Json jobs;
    EXPECT_TRUE(eventually([&] { return (jobs = list("jobs")).size() > known && find(jobs, job); },
                           std::chrono::seconds(20)))
        << jobs;
    return command;
  }
  static bool find(const Json& jobs, Json& waiting) {
    for (const Json& job : jobs) {
      if (job["pending_reason"] != "") return waiting = job, true;
    }
    return false;
  }
  ::testing::AssertionResult everything_is_free() {
    Json nodes;
    const bool is_free = eventually([&] {
      nodes = list("nodes");
      return std::all_of(nodes.begin(), nodes.end(),
                         [](const Json& node) { return node["available"] == node["resources"]; });
    });
    return is_free ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << nodes;
  }
};

TEST_F(JobPlaceTest, WaitsForTheNodeThatHasIt) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "3", "--resources", "{\"x\": 1}", "--label",
                                 "zone=in(a, b)", "--", "sh", "-c", "echo in $PWD; exit 7"},
                                waiting);
  EXPECT_EQ(waiting["state"], "pending");
  EXPECT_EQ(waiting["resources"], Json({{"CPU", 3}, {"x", 1}}));
  EXPECT_NE(waiting["pending_reason"].get<std::string>().find("zone"), std::string::npos)
      << waiting;
  const std::string id = waiting["id"];
  EXPECT_NE(starling({"why", id}).out.find("it waits: "), std::string::npos)
      << starling({"why", id}).out;
  EXPECT_NE(starling({"job", "status", id}).out.find("waits "), std::string::npos);
  EXPECT_EQ(waiting["started"], "");
  EXPECT_NE(starling({"job", "logs", id}).err.find("has not begun, so that it has no log yet"),
            std::string::npos)
      << starling({"job", "logs", id}).err;
  BackgroundCommand logs({program(), "job", "logs", "-f", id});  // waits with it
  start_node(head, {"--num-cpus", "4", "--resources", "{\"x\": 1}", "--label", "zone=b"});
  CommandResult result = command->finish();
  EXPECT_EQ(result.code, 7) << result.err;
  EXPECT_TRUE(result.out.starts_with("in ")) << result.out;
  EXPECT_EQ(logs.finish().out, result.out);
  EXPECT_NE(starling({"why", id}).out.find("failed: "), std::string::npos)
      << starling({"why", id}).out;
  EXPECT_NE(result.err.find("job " + id.substr(0, 8)), std::string::npos)
      << result.err;  // what it waited for was said
  const Json ended = job(id);
  EXPECT_EQ(ended["exit_code"], 7);
  for (const Json& node : list("nodes"))
    EXPECT_EQ(node["id"] == ended["node"], node["is_head"] == false);
  EXPECT_TRUE(everything_is_free());
  EXPECT_TRUE(list("placement-groups").empty());
}

TEST_F(JobPlaceTest, HasTheGpusThatItTakesAndGivesThemBack) {
  support::ScopedVariable devices("CUDA_VISIBLE_DEVICES", "4,6");
  start_head({"--num-cpus", "4", "--num-gpus", "2"});
  const std::string held = starling({"submit", "--detach", "--num-gpus", "1", "--", "sh", "-c",
                                     "echo $CUDA_VISIBLE_DEVICES; exec sleep 1000"})
                               .last_line();
  std::string first;
  ASSERT_TRUE(eventually([&] {
    return (first = starling({"job", "logs", held}).out).ends_with("\n");
  })) << held;
  CommandResult other =
      starling({"submit", "--num-gpus", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(std::set<std::string>({first, other.out}), std::set<std::string>({"4\n", "6\n"}))
      << other.err;
  Json waiting;
  auto both =
      submit_waiting({"--num-gpus", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"}, waiting);
  ASSERT_EQ(starling({"job", "stop", held}).code, 0);
  const CommandResult result = both->finish();
  EXPECT_EQ(result.out, "4,6\n") << result.err;
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, IsGivenUpByItsSubmitterByStopAndByItsTime) {
  start_head({"--num-cpus", "2"});
  Json waiting;
  auto stopped = submit_waiting({"--num-cpus", "9", "--", "true"}, waiting);
  EXPECT_EQ(starling({"job", "stop", waiting["id"]}).code, 0);
  EXPECT_EQ(stopped->finish().code, 1);
  EXPECT_EQ(job(waiting["id"])["state"], "stopped");
  for (int signal : {SIGINT, SIGKILL}) {
    Json given_up;
    auto command = submit_waiting({"--num-cpus", "9", "--", "true"}, given_up);
    ::kill(command->pid(), signal);
    command->finish();
    EXPECT_EQ(wait_for_end(given_up["id"])["state"], "stopped");
  }
  CommandResult late =
      starling({"submit", "--num-cpus", "9", "--place-timeout", "300ms", "--", "true"});
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("CPU"), std::string::npos) << late.err;
  EXPECT_NE(late.err.find("node "), std::string::npos) << late.err;
  EXPECT_TRUE(list("placement-groups").empty());
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, StillWaitsWhenTheHeadWasKilled) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
  const int process = head_of(session_of(head).pid);
  ASSERT_GT(process, 0);
  ::kill(process, SIGKILL);
  start_node(head, {"--num-cpus", "2"});
  const CommandResult result = command->finish();
  EXPECT_EQ(result.out, "ran\n") << result.err;
  EXPECT_EQ(wait_for_end(waiting["id"])["state"], "succeeded");
  EXPECT_TRUE(everything_is_free());
}

TEST_F(JobPlaceTest, StaysOnANodeThatIsDrained) {
  const std::string head = start_head({"--num-cpus", "1"});
  start_node(head, {"--num-cpus", "2"});
  start_node(head, {"--num-cpus", "2"});
  const std::string held =
      starling({"submit", "--detach", "--num-cpus", "2", "--", "sleep", "1000"}).last_line();
  const std::string node = job(held)["node"];
  BackgroundCommand drain({program(), "drain", node, "--deadline", "60s", "--reason", "test"});
  // It is not reserved anew elsewhere, as a gang of actors would be.
  ASSERT_TRUE(eventually(
      [&] {
        return starling({"why", node}).out.find("1 job") != std::string::npos ||
               starling({"list", "nodes"}).out.find("1 job") != std::string::npos;
      },
      std::chrono::seconds(20)))
      << starling({"list", "nodes"}).out;
  const Json groups = list("placement-groups");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0]["bundles"][0]["node"], node) << groups;
  EXPECT_EQ(job(held)["state"], "running");
  EXPECT_EQ(starling({"job", "stop", held}).code, 0);
  EXPECT_TRUE(eventually([&] { return list("nodes").size() == 2; }, std::chrono::seconds(20)));
}

TEST_F(JobPlaceTest, RefusesWhatCannotBeMeant) {
  start_head({"--num-cpus", "1"});
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--num-cpus", "-1"}, "CPU"},
      {{"--resources", "[1]"}, "--resources"},
      {{"--label", "zone=a"}, "--num-cpus"},
      {{"--num-cpus", "1", "--label", "zone"}, "--label"},
      {{"--num-cpus", "1", "--label", "zone=in(a"}, "zone"},
      {{"--num-cpus", "1", "--place-timeout", "soon"}, "--place-timeout"},
      {{"--num-cpus", "0"}, "--num-cpus"},
      {{"--num-cpus", ""}, "--num-cpus"},
      {{"--num-cpus", "abc"}, "parsing abc"},  // and not what stands behind it
      {{"--num-cpus", "1e300"}, "1e+300; it must be a number from 0 to 1e14"},
      {{"--resources", ""}, "--resources is not a JSON object"},
      {{"--resources", "{\"tape\": 1, \"tape\": 2}"}, "--resources has 'tape' twice"},
      {{"--resources", "{\"a\\u0000b\": 1}"}, "control characters"},
      {{"--resources", "{\"" + std::string(5000, 'x') + "\": 1}"}, "5000 bytes, of at most 256"},
      {{"--num-cpus", "1", "--label", "zone=!!b"}, "one '!' is enough"},
      {{"--num-cpus", "1", "--place-timeout", "0"}, "above zero"},
      {{"--num-cpus", "1", "--env", "STARLING_ADDRESS=x"}, "STARLING_ADDRESS"},
      // Before it waits for a place that it could make no use of.
      {{"--num-cpus", "99", "--working-dir", "/nowhere"}, "/nowhere"},
  };
  for (const auto& [options, named] : cases) {
    std::vector<std::string> arguments{"submit"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "true"});
    const CommandResult result = starling(arguments);
    EXPECT_NE(result.code, 0) << options[1];
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  }
  EXPECT_TRUE(list("placement-groups").empty());
  for (const Json& job : list("jobs")) EXPECT_EQ(job["state"], "failed") << job;
}

TEST_F(JobPlaceTest, LooksForAnotherPlaceWhenItsNodeGoesBeforeItBegan) {
  const std::string head = start_head({"--num-cpus", "1"});
  for (const bool drained : {true, false}) {
    SCOPED_TRACE(drained ? "drained" : "killed");
    Json waiting;
    auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
    ::kill(command->pid(), SIGSTOP);
    const std::string first = start_node(head, {"--num-cpus", "2"});
    const auto place = [&] {
      const Json groups = list("placement-groups");
      return groups.size() == 1 && groups[0]["state"] == "placed"
                 ? groups[0]["bundles"][0]["node"].get<std::string>()
                 : "";
    };
    ASSERT_TRUE(eventually([&] { return !place().empty(); }, std::chrono::seconds(20)));
    const std::string lost = place();
    const std::string second = start_node(head, {"--num-cpus", "2"});
    if (drained) {
      EXPECT_EQ(starling({"drain", first, "--deadline", "60s"}).code, 0);
      ASSERT_TRUE(
          eventually([&] { return !place().empty() && place() != lost; }, std::chrono::seconds(20)))
          << list("placement-groups");
    } else {
      ::kill(session_of(first).pid, SIGKILL);  // and the command does not know yet
    }
    ::kill(command->pid(), SIGCONT);
    const CommandResult result = command->finish();
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "ran\n") << result.err;
    EXPECT_EQ(wait_for_end(waiting["id"])["state"], "succeeded");
    EXPECT_NE(job(waiting["id"])["node"], lost);
    EXPECT_EQ(starling({"stop", "--address", second}).code, 0);
    EXPECT_TRUE(eventually([&] { return list("nodes").size() == 1; }, std::chrono::seconds(20)));
    EXPECT_TRUE(everything_is_free());
  }
}

TEST_F(JobPlaceTest, SaysThatItsSubmitterKeepsItWaiting) {
  const std::string head = start_head({"--num-cpus", "1"});
  Json waiting;
  auto command = submit_waiting({"--num-cpus", "2", "--", "echo", "ran"}, waiting);
  ::kill(command->pid(), SIGSTOP);
  start_node(head, {"--num-cpus", "2"});
  const auto reason = [&] { return job(waiting["id"])["pending_reason"].get<std::string>(); };
  EXPECT_TRUE(eventually(
      [&] {
        return reason().find("the command that submitted it has still to start it there") !=
               std::string::npos;
      },
      std::chrono::seconds(20)))
      << reason();
  for (const Json& node : list("nodes"))
    EXPECT_EQ(node["available"]["CPU"], node["is_head"] ? 1 : 0)
        << "what is all taken is there, with nothing of it";
  ::kill(command->pid(), SIGCONT);
  EXPECT_EQ(command->finish().out, "ran\n");
  EXPECT_TRUE(everything_is_free());
}

}  // namespace
}  // namespace runtime
