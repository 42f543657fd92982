// Jobs as the cluster lists and remembers them, also those without a submitter.
#include <csignal>

#include "runtime/process/session.h"
#include "tests/runtime/node/job_fixture.h"

namespace runtime {
namespace {

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

TEST_F(Job, RecordsSurviveTheHead) {
  const std::string address = start_head();
  const std::string ended = submit({"--", "sh", "-c", "echo why; exit 9"});
  wait_for_end(ended);
  const std::string other = submit({"--", "sh", "-c", until("other") + "exit 6"});
  const std::string running = submit({"--", "sleep", "1000"});
  int head = 0;
  ASSERT_TRUE(eventually([&] { return (head = head_of(session_of(address).pid)) > 0; }));
  ::kill(head, SIGKILL);
  Json known = job(ended);
  EXPECT_EQ(known["state"], "failed");
  EXPECT_EQ(known["exit_code"], 9);
  EXPECT_EQ(known["log_tail"], "why");
  EXPECT_EQ(job(running)["state"], "running");
  EXPECT_EQ(job(other)["state"], "running");
  write(work_.file("other"), "");
  EXPECT_EQ(wait_for_end(other)["exit_code"], 6);
  // One of whose end the head hears nothing any more.
  const std::string third =
      submit({"--", "sh", "-c", "echo left $$; " + until("third") + "exit 7"});
  const int process = left_by(third);
  ASSERT_GT(process, 0);
  ASSERT_TRUE(eventually([&] { return (head = head_of(session_of(address).pid)) > 0; }));
  ::kill(head, SIGSTOP);
  write(work_.file("third"), "");
  EXPECT_TRUE(eventually([&] { return !process_runs(process); }));
  ::kill(head, SIGKILL);
  Json late = wait_for_end(third);
  EXPECT_EQ(late["exit_code"], 7) << late;
  EXPECT_EQ(starling({"job", "stop", running}).code, 0);
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

// As of a node in a container that shares the folder of sessions.
TEST_F(Job, ADriverWhosePidMeansNothingToItsNodeIsStoppedAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  BackgroundCommand node({"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", program(),
                          "start", "--head", "--port", "0", "--block"});
  node.wait_for_output("127.0.0.1:");
  BackgroundCommand driver({self(), "driver", "hold"});
  driver.wait_for_output("ready ");
  const Json list = Json::parse(starling({"job", "list", "--json"}).out);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["pid"], 0);
  const CommandResult stopped = starling({"job", "stop", list[0]["id"].get<std::string>()});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(job(list[0]["id"])["state"], "stopped");
  EXPECT_EQ(starling({"stop"}).code, 0);
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

}  // namespace
}  // namespace runtime
