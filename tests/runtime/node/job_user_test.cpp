// Jobs of several users at a node of root's: as whom they run, what they may do, and how many.
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "runtime/control/control.h"
#include "runtime/control/control_channel.h"
#include "runtime/control/job_client.h"
#include "runtime/control/node_client.h"
#include "runtime/process/session.h"
#include "runtime/transport/blocking.h"
#include "runtime/transport/listener.h"
#include "tests/runtime/node/job_fixture.h"

namespace runtime {
namespace {

/// As another user of this machine, with the token.
class JobUserTest : public Job {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !::getpwnam("nobody")) GTEST_SKIP() << "needs root";
    fs::permissions(cache_folder_.path(), fs::perms(0711));
    fs::permissions(work_.path(), fs::perms(0755));
    fs::permissions(tools_.path(), fs::perms(0755));
    fs::copy_file(
        program(),
        tools_.path() / "starling");  // the build may lie in a folder that is closed to others
    fs::permissions(tools_.path() / "starling", fs::perms(0755));
    if (run_command({"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "test", "-x",
                     tools_.file("starling")})
            .code != 0) {
      GTEST_SKIP() << "the folder for temporary files is closed to others: " << tools_.path();
    }
  }
  CommandResult as_nobody(const std::string& address, std::vector<std::string> arguments) {
    return as_nobody_with(submitter_token(address), std::move(arguments));
  }
  std::string cluster_token(const std::string& address) {
    return *runtime::read_file(session_of(address).dir.parent_path() / "token", 1000);
  }
  std::string submitter_token(const std::string& address) {
    std::string token = starling({"token", "--submitter", "--address", address}).out;
    token.erase(token.find_last_not_of('\n') + 1);
    return token;
  }
  std::size_t list_nodes() { return Json::parse(starling({"list", "nodes", "--json"}).out).size(); }
  static std::vector<std::string> command_of(const std::string& user, const std::string& path,
                                             std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"setpriv", "--reuid=" + user, "--regid=nogroup", "--clear-groups", path});
    return arguments;
  }
  CommandResult as(const std::string& user, const std::string& token,
                   std::vector<std::string> arguments) {
    support::ScopedVariable in_environment("STARLING_TOKEN", token.c_str());
    support::ScopedVariable root("STARLING_SESSION_ROOT", "/nonexistent");
    return run_command(command_of(user, tools_.file("starling"), std::move(arguments)));
  }
  std::unique_ptr<BackgroundCommand> in_background(const std::string& user,
                                                   const std::string& token,
                                                   std::vector<std::string> arguments) {
    support::ScopedVariable in_environment("STARLING_TOKEN", token.c_str());
    support::ScopedVariable root("STARLING_SESSION_ROOT", "/nonexistent");
    return std::make_unique<BackgroundCommand>(
        command_of(user, tools_.file("starling"), std::move(arguments)));
  }
  std::size_t count_jobs(const std::string& user, const std::string& state) {
    std::size_t count = 0;
    for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out))
      count += job["user"] == user && job["state"] == state;
    return count;
  }
  CommandResult as_nobody_with(const std::string& token, std::vector<std::string> arguments,
                               const std::string& sessions = "/nonexistent") {
    support::ScopedVariable in_environment("STARLING_TOKEN", token.c_str());
    support::ScopedVariable root("STARLING_SESSION_ROOT", sessions.c_str());
    std::vector<std::string> argv{"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                                  tools_.file("starling")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_command(argv);
  }
  support::TemporaryFolder tools_;
};

TEST_F(JobUserTest, ANodeOfRootBecomesTheSubmitter) {
  const std::string address = start_head();
  write(work_.path() / "mine", "shipped\n");
  fs::permissions(work_.path() / "mine", fs::perms(0644));
  CommandResult result =
      as_nobody(address, {"submit", "--address", address, "--working-dir", work_.path().string(),
                          "--", "sh", "-c",
                          "id -un; cat mine; echo new > made && cat made; echo $STARLING_TOKEN; "
                          "echo $USER; ls /root 2>&1"});
  EXPECT_NE(result.code, 0) << result.out;  // ls may not
  EXPECT_TRUE(
      result.out.starts_with("nobody\nshipped\nnew\n" + submitter_token(address) + "\nnobody\n"))
      << result.out << result.err;
  EXPECT_NE(result.out.find("ermission denied"), std::string::npos) << result.out;
  Json list = Json::parse(starling({"job", "list", "--json"}).out);
  EXPECT_EQ(list[0]["user"], "nobody");
  EXPECT_EQ(starling({"submit", "--", "id", "-un"}).out, "root\n");
  CommandResult stop =
      as_nobody(address, {"submit", "--address", address, "--", "sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(stop.code, 128 + SIGTERM);
}

TEST_F(JobUserTest, AFloodOfRequestsLeavesTheNodeToOthers) {
  const std::string address = start_head();
  EventLoop loop;
  Credentials credentials;
  credentials.token = submitter_token(address);
  auto channel = connect(loop, *Endpoint::parse(address), credentials);
  ASSERT_TRUE(channel.ok()) << channel.status().message();
  constexpr int kMany = 20'000;
  std::atomic<int> answered = 0;
  for (int i = 0; i < kMany; ++i) {
    control::QueryJob query;
    query.job = JobId::random();
    ControlRequest request{{}, std::chrono::minutes(1), query};
    send_request(**channel, request, [&](Result<ControlAnswer> answer) {
      answered += answer.status().code() == ErrorCode::kNotFound ||
                  answer.status().code() == ErrorCode::kResourceExhausted;
    });
  }
  const CommandResult others = starling({"list", "nodes", "--address", address});
  EXPECT_EQ(others.code, 0) << others.err;
  EXPECT_TRUE(eventually([&] { return answered == kMany; }, std::chrono::seconds(20))) << answered;
}

// With a submitter's token no user becomes root. That user's node in the cluster does not
// help, nor a driver, nor what a job finds in its environment.
TEST_F(JobUserTest, ASubmittersTokenIsForSubmittingAlone) {
  const std::string address = start_head();
  const std::string token = submitter_token(address);
  EXPECT_EQ(token.size(), std::string("submit-").size() + 64) << token;
  EXPECT_EQ(token.find(cluster_token(address)), std::string::npos);
  const auto refused = [&](std::vector<std::string> arguments, std::string_view why) {
    const CommandResult result = as_nobody(address, std::move(arguments));
    EXPECT_NE(result.code, 0) << result.out;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refused({"start", "--block", "--address", address, "--bind", "127.0.0.1"},
          "which cannot start a node");
  refused({"stop", "--address", address}, "a submitter's token is for `starling submit`");
  refused({"list", "actors", "--address", address}, "a submitter's token is for `starling submit`");
  refused({"logs", "--address", address}, "a submitter's token is for `starling submit`");
  EXPECT_EQ(as_nobody(address, {"status", "--address", address}).code, 0);
  EXPECT_EQ(list_nodes(), 1u);

  // What root's jobs print is root's, also of one that failed: its token could be in it.
  const CommandResult failed =
      starling({"submit", "--", "sh", "-c", "cat $STARLING_TOKEN_FILE; echo; exit 3"});
  ASSERT_EQ(failed.code, 3);
  const std::string failed_id = Json::parse(starling({"job", "list", "--json"}).out)[0]["id"];
  EXPECT_NE(starling({"job", "status", failed_id}).out.find(cluster_token(address)),
            std::string::npos)
      << "the tail of its output is kept";
  for (const char* format : {"", "--json"}) {
    std::vector<std::string> look{"job", "status", failed_id, "--address", address};
    if (*format != '\0') look.push_back(format);
    const CommandResult seen = as_nobody(address, look);
    EXPECT_EQ((seen.out + seen.err).find(cluster_token(address)), std::string::npos) << seen.out;
  }
  const CommandResult state = as_nobody(address, {"status", "--json", "--address", address});
  EXPECT_EQ(state.out.find("STARLING_TOKEN"), std::string::npos) << "what others run";

  // A user may not stop another's job, only their own.
  const CommandResult of_root = starling({"submit", "--detach", "--", "sleep", "60"});
  ASSERT_EQ(of_root.code, 0) << of_root.err;
  std::string roots;
  for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out)) {
    if (job["state"] == "running") roots = job["id"];
  }
  refused({"job", "stop", roots, "--address", address},
          "a submitter's token is for `starling submit`");
  ASSERT_EQ(
      as_nobody(address, {"submit", "--detach", "--address", address, "--", "sleep", "60"}).code,
      0);
  int stopped_jobs = 0;
  for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out)) {
    if (job["user"] != "nobody") continue;
    ++stopped_jobs;
    const CommandResult stopped =
        as_nobody(address, {"job", "stop", job["id"], "--address", address});
    EXPECT_EQ(stopped.code, 0) << stopped.err;
  }
  EXPECT_EQ(stopped_jobs, 1);
  EXPECT_EQ(starling({"job", "stop", roots}).code, 0);
}

// Who submits without end keeps neither other users nor root from submitting.
TEST_F(JobUserTest, AUserWithManyJobsLeavesRoomForOthers) {
  const std::string address = start_head({"--user-jobs", "3", "--num-cpus", "1"});
  const auto submit = [&](const std::string& user, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"submit", "--address", address});
    return as(user, submitter_token(address), std::move(arguments));
  };
  for (int i = 0; i < 2; ++i) {
    const CommandResult begun = submit("nobody", {"--detach", "--", "sleep", "300"});
    ASSERT_EQ(begun.code, 0) << begun.err;
  }
  auto waiting = in_background("nobody", submitter_token(address),
                               {"submit", "--address", address, "--num-cpus", "9", "--", "true"});
  ASSERT_TRUE(eventually([&] { return count_jobs("nobody", "pending") == 1; }));
  for (std::vector<std::string> more :
       {std::vector<std::string>{"--detach", "--", "true"}, {"--num-cpus", "1", "--", "true"}}) {
    const CommandResult refused = submit("nobody", std::move(more));
    EXPECT_NE(refused.code, 0);
    EXPECT_NE(refused.err.find("nobody has 3 jobs on this node that run or wait, as many as a user "
                               "may have (starling start --user-jobs)"),
              std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(submit("daemon", {"--", "id", "-un"}).out, "daemon\n");
  EXPECT_EQ(submit("daemon", {"--num-cpus", "1", "--", "id", "-un"}).out, "daemon\n");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(starling({"submit", "--detach", "--", "sleep", "300"}).code, 0)
        << "root has no limit";
  // One that ends makes room.
  ::kill(waiting->pid(), SIGINT);
  EXPECT_NE(waiting->finish().code, 0);
  EXPECT_EQ(submit("nobody", {"--", "id", "-un"}).out, "nobody\n");
}

TEST_F(JobUserTest, AUserWithManyConnectionsLeavesRoomForOthers) {
  const std::string address = start_head({"--user-connections", "2"});
  const std::string token = submitter_token(address);
  std::vector<std::unique_ptr<BackgroundCommand>> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(
        in_background("nobody", token, {"submit", "--address", address, "--", "sleep", "300"}));
  }
  ASSERT_TRUE(
      eventually([&] { return count_jobs("nobody", "running") == 2; }, std::chrono::seconds(20)));
  const CommandResult refused = as("nobody", token, {"status", "--address", address});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("nobody has 2 connections to this node, as many as a user may have "
                             "(starling start --user-connections)"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(as("daemon", token, {"status", "--address", address}).code, 0);
  EXPECT_EQ(starling({"status"}).code, 0);
  ::kill(open.back()->pid(), SIGINT);
  open.back()->finish();
  EXPECT_TRUE(eventually(
      [&] {
        return as("nobody", token, {"status", "--address", address}).code == 0;
      },
      std::chrono::seconds(10)));
}

// Two users whose jobs wait for the same slot have it in turn.
TEST_F(JobUserTest, UsersWhoseJobsWaitTakeTurns) {
  const std::string address = start_head({"--num-cpus", "1"});
  const std::string token = submitter_token(address);
  const std::string held =
      starling({"submit", "--detach", "--num-cpus", "1", "--", "sleep", "300"}).last_line();
  write(work_.path() / "order", "");
  fs::permissions(work_.path() / "order", fs::perms(0666));
  std::vector<std::unique_ptr<BackgroundCommand>> waiting;
  const auto submit = [&](const std::string& user) {
    const std::size_t before = count_jobs(user, "pending");
    waiting.push_back(in_background(user, token,
                                    {"submit", "--address", address, "--num-cpus", "1", "--", "sh",
                                     "-c", "id -un >> " + (work_.path() / "order").string()}));
    ASSERT_TRUE(eventually([&] { return count_jobs(user, "pending") == before + 1; },
                           std::chrono::seconds(20)));
  };
  for (int i = 0; i < 3; ++i) submit("nobody");
  for (int i = 0; i < 2; ++i) submit("daemon");
  ASSERT_EQ(starling({"job", "stop", held}).code, 0);
  for (auto& command : waiting) {
    const CommandResult result = command->finish();
    EXPECT_EQ(result.code, 0) << result.err;
  }
  EXPECT_EQ(*runtime::read_file(work_.path() / "order", 1000),
            "nobody\ndaemon\nnobody\ndaemon\nnobody\n");
}

// With the id of another's job one neither ends it nor takes its place.
TEST_F(JobUserTest, TheIdOfAnothersJobIsOfNoUse) {
  const std::string address = start_head();
  ASSERT_EQ(starling({"submit", "--detach", "--", "sleep", "60"}).code, 0);
  const auto running = [&] { return Json::parse(starling({"job", "list", "--json"}).out)[0]; };
  const JobId victim = *JobId::from_hex(running()["id"].get<std::string>());
  auto cluster = find_cluster(address);
  ASSERT_TRUE(cluster.ok());
  cluster->token = submitter_token(address);
  EventLoop loop;
  auto client =
      NodeClient::connect(loop, *cluster, Role::kTool, deadline_after(std::chrono::seconds(10)));
  ASSERT_TRUE(client.ok()) << client.status().to_string();
  JobRequest request;
  request.argv = {"true"};
  request.job = victim;
  request.place = GroupId::random();
  const auto submitted =
      wait_for<JobId>(loop, deadline_after(std::chrono::seconds(10)), [&](auto done) {
        JobClient(**client).submit(request, {}, deadline_after(std::chrono::seconds(10)), done);
      });
  EXPECT_EQ(submitted.status().code(), ErrorCode::kInvalidArgument)
      << submitted.status().to_string();
  control::QueueJob queue;
  queue.job = victim;
  queue.place = GroupId::random();
  queue.argv = {"true"};
  queue.resources = {{"CPU", 1}};
  const auto queued =
      wait_for<GroupState>(loop, deadline_after(std::chrono::seconds(10)), [&](auto done) {
        JobClient(**client).queue(queue, deadline_after(std::chrono::seconds(10)), done);
      });
  EXPECT_EQ(queued.status().code(), ErrorCode::kInvalidArgument) << queued.status().to_string();
  EXPECT_EQ(running()["state"], "running");
  EXPECT_EQ(starling({"job", "stop", victim.hex()}).code, 0);

  // One that waits for its place is not disturbed either: it ends as it is told.
  BackgroundCommand waits({program(), "submit", "--num-cpus", "1000", "--", "true"});
  const auto pending = [&]() -> Json {
    for (const Json& job : Json::parse(starling({"job", "list", "--json"}).out)) {
      if (job["state"] == "pending") return job;
    }
    return nullptr;
  };
  ASSERT_TRUE(eventually([&] { return !pending().is_null(); }));
  request.job = *JobId::from_hex(pending()["id"].get<std::string>());
  const auto taken =
      wait_for<JobId>(loop, deadline_after(std::chrono::seconds(10)), [&](auto done) {
        JobClient(**client).submit(request, {}, deadline_after(std::chrono::seconds(10)), done);
      });
  EXPECT_EQ(taken.status().code(), ErrorCode::kInvalidArgument) << taken.status().to_string();
  EXPECT_FALSE(pending().is_null());
  EXPECT_EQ(starling({"job", "stop", request.job.hex()}).code, 0);
  EXPECT_NE(waits.finish().code, 0);
  EXPECT_TRUE(pending().is_null());
}

// Who is given the cluster's token and is another user of the machine is known by the kernel.
TEST_F(JobUserTest, AnotherUsersNodeDoesNotJoinRootsCluster) {
  const std::string address = start_head();
  const fs::path sessions = tools_.path() / "nobody";
  fs::create_directory(sessions);
  fs::permissions(sessions, fs::perms::owner_all);
  const passwd* nobody = ::getpwnam("nobody");
  ASSERT_EQ(::chown(sessions.c_str(), nobody->pw_uid, nobody->pw_gid), 0);
  support::ScopedVariable cache("STARLING_CACHE", (sessions / "cache").c_str());
  const CommandResult result = as_nobody_with(
      cluster_token(address), {"start", "--block", "--address", address, "--bind", "127.0.0.1"},
      sessions.string());
  EXPECT_NE(result.code, 0) << result.out;
  EXPECT_NE(result.err.find("runs as root, and nobody's node"), std::string::npos) << result.err;
  EXPECT_EQ(list_nodes(), 1u);
}

}  // namespace
}  // namespace runtime
