// Nodes as users start, ask and stop them.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/node/head_child.h"
#include "runtime/node/head_link.h"
#include "runtime/process/file_util.h"
#include "tests/runtime/node/cluster_fixture.h"
#include "tests/support/pauses.h"
#include "tests/support/terminal.h"

namespace runtime {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Cluster : public ClusterTest {};

TEST_F(Cluster, StartsTellsAndStops) {
  CommandResult started = starling({"start", "--head", "--port", "0"});
  ASSERT_EQ(started.code, 0) << started.err;
  std::string address = started.last_line();
  EXPECT_TRUE(address.starts_with("127.0.0.1:")) << started.out;
  SessionInfo head = session_of(address);
  EXPECT_TRUE(process_runs(head.pid));

  CommandResult status = starling({"status", "--json"});
  ASSERT_EQ(status.code, 0) << status.err;
  Json json = Json::parse(status.out);
  ASSERT_EQ(json["nodes"].size(), 1u);
  EXPECT_EQ(json["nodes"][0]["address"], address);
  EXPECT_EQ(json["nodes"][0]["state"], "alive");
  EXPECT_EQ(json["nodes"][0]["is_head"], true);
  EXPECT_EQ(json["nodes"][0]["pid"], head.pid);
  EXPECT_GE(json["nodes"][0]["resources"]["CPU"], 1);
  EXPECT_EQ(starling({"status"}).code, 0);

  CommandResult stopped = starling({"stop"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_FALSE(process_runs(head.pid));
  EXPECT_EQ(starling({"status"}).code, 1);
  EXPECT_EQ(starling({"stop"}).code, 1);
}

class ClusterTiming : public Cluster {};

TEST_F(ClusterTiming, StartsWithinASecond) {
  const CommandResult started = starling({"start", "--head", "--port", "0"});
  ASSERT_EQ(started.code, 0);
  EXPECT_LT(started.took.count(), 1000);  // 40 ms on an idle machine
}

TEST_F(Cluster, IsSmallAtFirst) {
  CommandResult started = starling({"start", "--head", "--port", "0"});
  ASSERT_EQ(started.code, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_kib(session_of(started.last_line()).pid), 20 * 1024);
#endif
}

TEST_F(Cluster, ASecondNodeJoinsWithItsResources) {
  std::string head = start_head();
  std::string node =
      start_node(head, {"--num-cpus", "7", "--resources", "{\"x\": 1.5}", "--label", "zone=b"});
  Json nodes = Json::parse(starling({"list", "nodes", "--json"}).out);
  ASSERT_EQ(nodes.size(), 2u);
  const Json& second = nodes[nodes[0]["is_head"] == true ? 1 : 0];
  EXPECT_EQ(second["address"], node);
  EXPECT_EQ(second["is_head"], false);
  EXPECT_EQ(second["resources"]["CPU"], 7);
  EXPECT_EQ(second["available"]["x"], 1.5);
  EXPECT_EQ(second["labels"]["zone"], "b");

  // Its own address stops it alone.
  SessionInfo gone = session_of(node);
  EXPECT_EQ(starling({"stop", "--address", node}).code, 0);
  EXPECT_FALSE(process_runs(gone.pid));
  EXPECT_TRUE(eventually([&] {
    return Json::parse(starling({"status", "--json", "--address", head}).out)["nodes"].size() == 1;
  }));
}

TEST_F(Cluster, StopEndsAllNodesOfItsClusterOnly) {
  std::string first = start_head();
  std::string first_node = start_node(first);
  std::string second = start_head();
  EXPECT_EQ(Json::parse(starling({"status", "--json"}).out)["nodes"][0]["address"],
            second);  // the last start
  SessionInfo other = session_of(second);
  std::vector<int> pids{session_of(first).pid, session_of(first_node).pid};
  EXPECT_EQ(starling({"stop", "--address", first}).code, 0);
  for (int pid : pids) EXPECT_FALSE(process_runs(pid));
  EXPECT_TRUE(process_runs(other.pid));
}

TEST_F(Cluster, ASecondStopDoesNotTakeTheNextCluster) {
  std::string first = start_head();
  start_head();
  EXPECT_EQ(starling({"stop"}).code, 0);
  CommandResult again = starling({"stop"});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find(first), std::string::npos) << again.err;
  EXPECT_EQ(running_sessions().size(), 1u);
  EXPECT_EQ(starling({"status"}).code, 0);  // to look at the only one there is does no harm
}

// As a container does that shares the folder of sessions.
TEST_F(Cluster, ALookFromAnotherPidNamespaceChangesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  const std::string head = start_head();
  const SessionInfo session = session_of(head);
  const CommandResult looked =
      run_command({"unshare", "--pid", "--fork", "--mount-proc", program(), "status"});
  EXPECT_EQ(looked.code, 0) << looked.err;
  EXPECT_NE(looked.out.find(head), std::string::npos) << looked.out;
  for (const char* file : {"node.json", "node.sock", "head.sock", "journal", "../token"})
    EXPECT_TRUE(std::filesystem::exists(session.dir / file)) << file;
  EXPECT_EQ(starling({"status"}).code, 0);
}

// As systemd-tmpfiles and its like do after ten quiet days.
TEST_F(Cluster, AHeadRestartsAfterACleanerTookTheFilesAway) {
  const std::string head = start_head();
  const SessionInfo session = session_of(head);
  const std::string secret = *read_file(session.dir.parent_path() / "token", 4096);
  const std::filesystem::path root = session.dir.parent_path().parent_path();
  for (const std::filesystem::path& file :
       {session.dir / "node.json", session.dir.parent_path() / "token", session.dir / kNodeLock,
        root / "last", root / kRootMark})
    ASSERT_TRUE(std::filesystem::remove(file)) << file;
  const int first = child_of(session.pid, "head");
  ASSERT_GT(first, 0);
  ::kill(first, SIGKILL);
  {
    support::ScopedVariable token("STARLING_TOKEN", secret.c_str());
    EXPECT_TRUE(eventually(
        [&] {
          const int now = child_of(session.pid, "head");
          return now > 0 && now != first &&
                 starling({"list", "nodes", "--address", head}).code == 0;
        },
        std::chrono::seconds(20)));
  }
  // They are put back within half a minute.
  EXPECT_TRUE(eventually([] { return running_sessions().size() == 1; }, std::chrono::seconds(45)));
  EXPECT_TRUE(std::filesystem::exists(root / kRootMark));
  EXPECT_EQ(starling({"status"}).code, 0);
}

TEST_F(Cluster, ANodeWhoseSocketWasRemovedIsLookedAtAndStoppedByItsPort) {
  const SessionInfo session = session_of(start_head());
  ASSERT_TRUE(std::filesystem::remove(session.dir / "node.sock"));
  const CommandResult looked = starling({"status"});
  EXPECT_EQ(looked.code, 0) << looked.err;
  const CommandResult stopped = starling({"stop"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(stopped.err.find("killing"), std::string::npos) << stopped.err;
}

TEST_F(Cluster, AStartDoesNotTouchTheFolderThatItIsGiven) {
  const std::filesystem::path scratch = folder_.path() / "scratch";
  std::filesystem::create_directories(scratch / "alice" / "project");
  std::filesystem::permissions(scratch, static_cast<std::filesystem::perms>(01777));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  std::filesystem::last_write_time(scratch / "alice" / "project", long_ago);
  {
    support::ScopedVariable root("STARLING_SESSION_ROOT", scratch.c_str());
    const std::string head = start_head();
    EXPECT_EQ(starling({"status"}).code, 0);
    EXPECT_EQ(starling({"stop", "--address", head}).code, 0);
  }
  EXPECT_TRUE(std::filesystem::exists(scratch / "alice" / "project"));
  struct stat info {};
  ASSERT_EQ(::stat(scratch.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
  std::filesystem::remove_all(scratch);
}

TEST_F(Cluster, AJournalFolderThatIsOpenToOthersIsRefusedAsItIs) {
  const std::filesystem::path shared = folder_.path() / "shared";
  std::filesystem::create_directory(shared);
  std::filesystem::permissions(shared, static_cast<std::filesystem::perms>(0755));
  const CommandResult started =
      starling({"start", "--head", "--port", "0", "--journal", shared.string()});
  EXPECT_EQ(started.code, 1);
  EXPECT_NE(started.err.find("chmod 700"), std::string::npos) << started.err;
  struct stat info {};
  ASSERT_EQ(::stat(shared.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
  std::filesystem::remove(shared);
}

TEST_F(Cluster, APortInUseIsAnErrorAndLeavesNothing) {
  std::string head = start_head();
  std::string port = head.substr(head.rfind(':') + 1);
  CommandResult second = starling({"start", "--head", "--port", port});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("error:"), std::string::npos);
  EXPECT_NE(second.err.find(port), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("pid " + std::to_string(session_of(head).pid)), std::string::npos)
      << second.err;
  EXPECT_EQ(running_sessions().size(), 1u);
  EXPECT_EQ(starling({"status"}).code, 0);  // the first one is well
}

TEST_F(Cluster, AFileSizeLimitThatIsTooLowIsNamed) {
  const CommandResult start =
      run_command({"/bin/sh", "-c", "ulimit -f 2 && exec \"$0\" start --head --port 0", program()});
  EXPECT_EQ(start.code, 1);
  EXPECT_NE(start.err.find("ulimit -f"), std::string::npos) << start.err;
}

TEST_F(Cluster, JoiningWhereNoNodeListensIsAnError) {
  std::string head = start_head();
  SessionInfo session = session_of(head);
  support::ScopedVariable token("STARLING_TOKEN", "some token");
  CommandResult joined = starling({"start", "--address", "127.0.0.1:1"});
  EXPECT_EQ(joined.code, 1);
  EXPECT_NE(joined.err.find("127.0.0.1:1"), std::string::npos) << joined.err;
}

TEST_F(Cluster, AWrongTokenIsRefused) {
  std::string head = start_head();
  {
    support::ScopedVariable token("STARLING_TOKEN", "wrong");
    for (std::vector<std::string> command :
         std::vector<std::vector<std::string>>{{"start", "--address", head},
                                               {"status", "--address", head},
                                               {"stop", "--address", head},
                                               {"submit", "--address", head, "--", "true"}}) {
      CommandResult refused = starling(command);
      EXPECT_EQ(refused.code, 1) << command[0];
      EXPECT_NE(refused.err.find("token"), std::string::npos) << refused.err;
    }
  }
  EXPECT_EQ(running_sessions().size(), 1u);
}

TEST_F(Cluster, AnAddressWithoutATokenSaysSo) {
  CommandResult status = starling({"status", "--address", "127.0.0.1:1"});
  EXPECT_EQ(status.code, 1);
  EXPECT_NE(status.err.find("STARLING_TOKEN"), std::string::npos) << status.err;
}

TEST_F(Cluster, ANodeIsNoHeadToJoin) {
  std::string head = start_head();
  std::string node = start_node(head);
  CommandResult joined = starling({"start", "--address", node});
  EXPECT_EQ(joined.code, 1);
  EXPECT_NE(joined.err.find("head"), std::string::npos) << joined.err;
  EXPECT_EQ(running_sessions().size(), 2u);
}

TEST_F(Cluster, RefusesNonsense) {
  EXPECT_EQ(starling({"start"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--address", "127.0.0.1:1"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--num-cpus", "-1"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--num-cpus", "nan"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--resources", "{x}"}).code, 1);
  EXPECT_EQ(
      starling({"start", "--head", "--port", "0", "--num-cpus", "1", "--resources", "{\"CPU\": 5}"})
          .code,
      1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--object-store-memory", "10"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--object-store-memory", "-5"}).code, 2);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--spill-limit", "9 apples"}).code, 2);
  for (const char* host : {":::", "::", "0.0.0.0", "a b", "10.0.0.1:80"}) {
    CommandResult advertised = starling({"start", "--head", "--port", "0", "--advertise", host});
    EXPECT_EQ(advertised.code, 1) << host;
    EXPECT_NE(advertised.err.find("--advertise"), std::string::npos) << advertised.err;
  }
  CommandResult junk = starling({"status", "--address", "junk"});
  EXPECT_EQ(junk.code, 1);
  EXPECT_NE(junk.err.find("expected HOST:PORT"), std::string::npos) << junk.err;
  CommandResult unknown = starling({"stat"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("'stat'"), std::string::npos) << unknown.err;
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--resources", "{\"x\": \"1\"}"}).code, 1);
  EXPECT_EQ(starling({"start", "--head", "--port", "0", "--label", "zone"}).code, 1);
  const CommandResult twice =
      starling({"start", "--head", "--port", "0", "--label", "zone=a", "--label", "zone=b"});
  EXPECT_EQ(twice.code, 1);
  EXPECT_NE(twice.err.find("--label zone is given twice"), std::string::npos) << twice.err;
  const CommandResult foreign =
      starling({"start", "--head", "--port", "0", "--bind", "203.0.113.1"});
  EXPECT_EQ(foreign.code, 1);
  EXPECT_NE(foreign.err.find("203.0.113.1: not an address of this machine"), std::string::npos)
      << foreign.err;
  for (const char* port : {"abc", "-1", "70000"}) {
    const CommandResult refused = starling({"start", "--head", "--port", port});
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("--port"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(starling({"frobnicate"}).code, 2);
  EXPECT_EQ(starling({}).code, 2);
  EXPECT_EQ(starling({"list", "widgets"}).code, 2);
  EXPECT_EQ(starling({"--help"}).code, 0);
  EXPECT_EQ(starling({"start", "--help"}).code, 0);
  EXPECT_TRUE(running_sessions().empty());
}

TEST_F(Cluster, IsFoundByTheAddressThatItPrintsAndByOthersThatLeadToIt) {
  for (const std::string host : {"localhost", "127.0.0.1", "0.0.0.0"}) {
    const std::string printed = start_head({"--bind", host});
    const std::string port = printed.substr(printed.rfind(':'));
    EXPECT_TRUE(host != "localhost" || printed == "localhost" + port) << printed;
    for (const std::string& way : {printed, "localhost" + port, "127.0.0.1" + port}) {
      const CommandResult status = starling({"status", "--address", way});
      EXPECT_EQ(status.code, 0) << host << " at " << way << ": " << status.err;
      EXPECT_EQ(starling({"submit", "--address", way, "--", "echo", "here"}).out, "here\n") << way;
    }
    EXPECT_EQ(starling({"status", "--address", "127.0.0.1:1"}).code, 1);
    const std::string joined = start_node(printed);
    EXPECT_EQ(starling({"status", "--address", joined}).code, 0);
    const CommandResult stopped = starling({"stop", "--address", "127.0.0.1" + port});
    EXPECT_EQ(stopped.code, 0) << stopped.err;
    EXPECT_NE(stopped.out.find("2 nodes"), std::string::npos) << stopped.out;
    EXPECT_TRUE(running_sessions().empty()) << host;
  }
}

TEST_F(Cluster, ANodeHasTheCpusOfItsControlGroup) {
  const std::string name = "starling-cpu-" + std::to_string(::getpid());
  fs::path group;
  std::error_code error;
  for (const char* root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
    if (!fs::create_directory(fs::path(root) / name, error)) continue;
    group = fs::path(root) / name;
    if (fs::exists(group / "cpu.cfs_quota_us", error) || fs::exists(group / "cpu.max", error))
      break;
    fs::remove(std::exchange(group, {}), error);
  }
  if (group.empty()) GTEST_SKIP() << "no control group for CPUs can be made here";
  const bool is_v2 = fs::exists(group / "cpu.max", error);
  std::ofstream(group / (is_v2 ? "cpu.max" : "cpu.cfs_quota_us"))
      << (is_v2 ? "100000 100000" : "100000");
  // Below it, so that the limit is found on the way up.
  const fs::path inner = group / "inner";
  fs::create_directory(inner, error);
  const CommandResult started =
      run_command({"sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", inner / "cgroup.procs", program(),
                   "start", "--head", "--port", "0"});
  EXPECT_EQ(started.code, 0) << started.err;
  const CommandResult status = starling({"status", "--json"});
  ASSERT_EQ(status.code, 0) << status.err;
  EXPECT_EQ(Json::parse(status.out)["nodes"][0]["resources"]["CPU"], 1) << status.out;
  EXPECT_EQ(starling({"stop"}).code, 0);
  for (const fs::path& folder : {inner, group})
    EXPECT_TRUE(eventually([&] { return ::rmdir(folder.c_str()) == 0; })) << folder;
}

TEST_F(Cluster, AMistypedWordIsNamedWithWhatMayHaveBeenMeant) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"satus"}, "error: no command 'satus'; did you mean 'status'"},
      {{"tran"}, "did you mean 'train'"},
      {{"drain", "x", "--dedline", "1s"},
       "unknown argument '--dedline'; did you mean '--deadline'?; see starling drain --help"},
      {{"drain", "x", "--dedline=1s"}, "did you mean '--deadline'?"},
      {{"status", "extra"}, "unknown argument 'extra'; see starling status --help"},
      {{"job", "lst"}, "no command 'lst'; did you mean 'list'?; see starling job --help"},
      {{"job"}, "a command is missing: list, status, logs, stop; see starling job --help"},
      {{"autoscaler"}, "a command is missing: status, check; see starling autoscaler --help"},
      {{"autoscaler", "check"}, "file is required; see starling autoscaler check --help"},
      {{}, "a command is missing: start, stop, status"},
      {{"start", "--address", "127.0.0.1:1", "--preemption-command", ""},
       "--preemption-command: it is empty; leave the option out"},
      {{"start", "--head", "--journal", ""}, "--journal: it is empty"},
      {{"start", "--head", "--autoscaler="}, "--autoscaler"},
  };
  for (const auto& [arguments, text] : mistakes) {
    const CommandResult result = starling(arguments);
    EXPECT_EQ(result.code, 2) << text;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  }
  EXPECT_TRUE(running_sessions().empty());
  start_head();
  for (const char* wrong : {"nosuch", ""}) {
    const CommandResult why = starling({"why", wrong});
    EXPECT_EQ(why.code, 1);
    EXPECT_NE(why.err.find("the nearest: "), std::string::npos) << why.err;
  }
}

TEST_F(Cluster, BlocksInTheForegroundUntilInterrupted) {
  BackgroundCommand head({program(), "start", "--head", "--port", "0", "--block"});
  head.wait_for_output("\n127.0.0.1:");
  ASSERT_TRUE(eventually([] { return running_sessions().size() == 1; }));
  EXPECT_EQ(running_sessions()[0].pid, head.pid());
  ::kill(head.pid(), SIGINT);
  CommandResult end = head.finish();
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(Cluster, APrivateClusterDiesWithItsParentAndIsNotFound) {
  // The shell stands for the program that wants its own cluster.
  BackgroundCommand parent({"sh", "-c", program() + " start --head --private --port 0; true"});
  parent.wait_for_output("127.0.0.1:");
  ASSERT_TRUE(eventually([] { return running_sessions().size() == 1; }));
  SessionInfo session = running_sessions()[0];
  EXPECT_FALSE(std::filesystem::exists(session_root() / "last"));
  ::kill(parent.pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(session.pid); }));
}

// As the program that a container runs.
TEST_F(Cluster, AProgramThatIsNumberOneOfItsPidNamespaceHasAPrivateCluster) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  const std::string own = program() + " start --head --private --port 0; true";
  {
    BackgroundCommand parent(
        {"unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", own});
    EXPECT_NE(parent.wait_for_output("127.0.0.1:").find("127.0.0.1:"), std::string::npos);
  }
  EXPECT_TRUE(eventually([] { return running_sessions().empty(); }));  // with its namespace
}

TEST_F(Cluster, ANodeThatIsNumberOneOfItsPidNamespaceReapsWhatIsLeftToIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  BackgroundCommand container({"unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                               program(), "start", "--head", "--block", "--port", "0"});
  container.wait_for_output("127.0.0.1:");
  const int first = child_of(container.pid(), "start");
  ASSERT_GT(first, 0);
  const auto in_container = [&](const std::string& script) {
    return run_command(
        {"nsenter", "--target", std::to_string(first), "--pid", "--mount", "sh", "-c", script});
  };
  EXPECT_EQ(in_container("for i in 1 2 3 4 5; do (true &); done").code, 0);
  EXPECT_TRUE(eventually(
      [&] { return in_container("grep -l '^State:.Z' /proc/[0-9]*/status; true").out.empty(); }));
  ::kill(first, SIGTERM);
  EXPECT_EQ(container.finish().code, 0);
  EXPECT_TRUE(running_sessions().empty());
}

TEST_F(Cluster, NodesEndWithTheirHead) {
  std::string head = start_head();
  SessionInfo node = session_of(start_node(head));
  ::kill(session_of(head).pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !process_runs(node.pid); }, 4 * kHeadAwayMax));
  std::string log = *read_file(node.dir / "logs" / "node.log", 1 << 20);
  EXPECT_NE(log.find("the head is gone"), std::string::npos) << log;
}

TEST_F(Cluster, AHeadThatDiesAgainAndAgainIsStartedBeforeItsNodesGiveItUp) {
  EXPECT_EQ(HeadLinkOptions{}.patience_brief, HeadChildOptions{}.restart_delay_max + kHeadFoundMax);
  const std::string head = start_head();
  const SessionInfo node = session_of(start_node(head));
  const auto members = [&] {
    CommandResult list = starling({"list", "nodes", "--json", "--address", head});
    return list.code == 0 ? nlohmann::json::parse(list.out) : nlohmann::json::array();
  };
  // Each pause is twice the one before, up to the longest.
  for (auto pause = HeadChildOptions{}.restart_delay_first;
       pause <= 2 * HeadChildOptions{}.restart_delay_max; pause *= 2) {
    const int child = child_of(session_of(head).pid, "head");
    ASSERT_GT(child, 0);
    ::kill(child, SIGKILL);
    ASSERT_TRUE(eventually(
        [&] { return child_of(session_of(head).pid, "head") > 0 && members().size() == 2; },
        std::chrono::seconds(20)));
  }
  EXPECT_TRUE(process_runs(node.pid));
  const auto now = members();
  EXPECT_TRUE(std::any_of(now.begin(), now.end(), [&](const auto& one) {
    return one["id"] == node.node.hex();
  })) << "the same member, not one that joined again";
}

TEST_F(Cluster, StopEndsANodeThatHangsIfItIsToldTo) {
  std::string head = start_head();
  SessionInfo session = session_of(head);
  ::kill(session.pid, SIGSTOP);
  // It cannot answer, so that asking and waiting take their time. It may have jobs.
  const CommandResult refused = starling({"stop", "--address", head});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("starling stop --force kills it, with its jobs"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(process_runs(session.pid));
  CommandResult stopped = starling({"stop", "--address", head, "--force"});
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_FALSE(process_runs(session.pid));
}

// Its jobs were not named: they are asked for before the node is told to stop.
TEST_F(Cluster, StopLeavesANodeWhoseJobsItCouldNotAskFor) {
  const std::string head = start_head();
  const SessionInfo session = session_of(head);
  ASSERT_EQ(starling({"submit", "--address", head, "--detach", "--", "sleep", "300"}).code, 0);
  ::kill(session.pid, SIGSTOP);
  std::thread wakes([&] {  // after the question about jobs (3 s), when it would be told to stop
    support::hold_for(std::chrono::seconds(4));
    ::kill(session.pid, SIGCONT);
  });
  const CommandResult refused = starling({"stop", "--address", head});
  wakes.join();
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_NE(refused.err.find("whether jobs run there is not known"), std::string::npos)
      << refused.err;
  EXPECT_TRUE(process_runs(session.pid));
  const CommandResult again = starling({"stop", "--address", head});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("sleep 300"), std::string::npos) << again.err;
  EXPECT_EQ(starling({"stop", "--address", head, "--force"}).code, 0);
}

// What a job writes is its rewards', models' and workers', too.
TEST_F(Cluster, AJobsOutputOnATerminalHasEscapes) {
  start_head();
  const support::TemporaryFolder work;
  const std::string text = "\x1b]0;x\x07 \x1b[31m\u009b31m\u202e \u00e9\n\xff\xe2\x80";
  std::ofstream(work.file("text")) << text;
  const std::string cat = "cat " + work.file("text"), job = cat + "; " + cat + " >&2";
  const std::string escaped = "\\x1b]0;x\\x07 \\x1b[31m\\u009b31m\\u202e \u00e9\n\\xff\\xe2\\x80";
  std::string out, err;
  int code = -1;
  {
    Terminal terminal_out(STDOUT_FILENO), terminal_err(STDERR_FILENO);
    code = std::system((program() + " submit -- sh -c '" + job + "'").c_str());
    out = terminal_out.shown();
    err = terminal_err.shown();
  }
  EXPECT_EQ(code, 0);
  EXPECT_EQ(out, escaped);
  EXPECT_EQ(err, escaped);
  const CommandResult raw = starling({"submit", "--", "sh", "-c", job});
  EXPECT_EQ(raw.out, text);
  EXPECT_EQ(raw.err, text);
}

TEST_F(Cluster, LogsAreShown) {
  start_head();
  CommandResult logs = starling({"logs"});
  EXPECT_EQ(logs.code, 0);
  EXPECT_NE(logs.out.find("listens at"), std::string::npos) << logs.out;
  EXPECT_EQ(starling({"logs", "nothing"}).code, 1);
}

}  // namespace
}  // namespace runtime
