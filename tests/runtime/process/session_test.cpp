#include "runtime/process/session.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <optional>
#include <thread>

#include "runtime/process/cache_folder.h"
#include "runtime/process/file_util.h"
#include "runtime/process/private_folder.h"
#include "runtime/process/session_folder.h"
#include "tests/support/temporary_folder.h"

namespace runtime {
namespace {

namespace fs = std::filesystem;

class SessionTest : public ::testing::Test {
 protected:
  /// A node that "runs" as this very process.
  SessionInfo publish(ClusterId cluster, const std::string& address, const std::string& head,
                      bool as_last = true) {
    SessionInfo info;
    info.cluster = cluster;
    info.node = NodeId::random();
    info.pid = ::getpid();
    info.pid_start = process_start_time(info.pid);
    info.address = address;
    info.head_address = head;
    info.is_head = address == head;
    info.pid_scope = pid_scope();
    auto folder = SessionFolder::create(cluster, info.node, "token-of-" + cluster.short_hex());
    EXPECT_TRUE(folder.ok()) << folder.status().message();
    info.dir = folder->path();
    EXPECT_TRUE(folder->publish(info, as_last).ok());
    folders_.insert_or_assign(info.dir, *std::move(folder));
    return info;
  }

  /// As the node's process would end by kill -9.
  void die(const SessionInfo& info) { folders_.erase(info.dir); }

  /// Makes everything in the folder, links aside, eight days old.
  static void age(const fs::path& folder) {
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 8);
    std::vector<fs::path> all{folder};
    for (const auto& entry : fs::recursive_directory_iterator(folder)) all.push_back(entry.path());
    for (const fs::path& path : all) {
      if (!fs::is_symlink(path)) fs::last_write_time(path, long_ago);
    }
  }

  static mode_t mode_of(const fs::path& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  std::map<fs::path, SessionFolder> folders_;
  support::TemporaryFolder folder_;
  support::ScopedVariable root_{"STARLING_SESSION_ROOT", (folder_.path() / "s").c_str()};
  support::ScopedVariable address_{"STARLING_ADDRESS", nullptr};
  support::ScopedVariable token_{"STARLING_TOKEN", nullptr};
  support::ScopedVariable token_file_{"STARLING_TOKEN_FILE", nullptr};
  ClusterId a_ = ClusterId::random();
  ClusterId b_ = ClusterId::random();
};

TEST_F(SessionTest, NothingRunsAtFirst) {
  EXPECT_TRUE(running_sessions().empty());
  auto found = find_cluster("");
  EXPECT_EQ(found.status().code(), ErrorCode::kNotFound);
  EXPECT_NE(found.status().message().find("starling start --head"), std::string::npos);
}

TEST_F(SessionTest, FilesArePrivate) {
  SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  struct stat status;
  ASSERT_EQ(::stat((info.dir.parent_path() / "token").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  for (const fs::path& folder : {info.dir, info.dir.parent_path(),
                                 info.dir.parent_path().parent_path(), info.dir / "logs"}) {
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u) << folder;
  }
}

TEST_F(SessionTest, RefusesARootThatIsALink) {
  fs::create_directory(folder_.path() / "elsewhere");
  fs::permissions(folder_.path() / "elsewhere", fs::perms::owner_all);
  const fs::path named = folder_.path() / "s";
  fs::create_directory(named);
  fs::create_symlink(folder_.path() / "elsewhere", session_root());
  EXPECT_EQ(SessionFolder::create(a_, NodeId::random(), "t").status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(find_cluster("").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(fs::is_empty(folder_.path() / "elsewhere"));
}

TEST_F(SessionTest, RefusesFoldersTooLongForSockets) {
  std::string lengthy = (folder_.path() / std::string(60, 'x')).string();
  support::ScopedVariable root("STARLING_SESSION_ROOT", lengthy.c_str());
  auto made = SessionFolder::create(a_, NodeId::random(), "t");
  EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(made.status().message().find("too long"), std::string::npos);
}

TEST_F(SessionTest, ExplicitThenVariableThenLast) {
  publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  publish(b_, "127.0.0.1:2", "127.0.0.1:2");
  EXPECT_EQ(find_cluster("")->cluster, b_);
  EXPECT_EQ(find_cluster("")->token, "token-of-" + b_.short_hex());
  EXPECT_EQ(find_cluster("127.0.0.1:1")->cluster, a_);
  EXPECT_EQ(find_cluster("localhost:1")->cluster, a_);
  support::ScopedVariable variable("STARLING_ADDRESS", "127.0.0.1:1");
  EXPECT_EQ(find_cluster("")->cluster, a_);
  EXPECT_EQ(find_cluster("127.0.0.1:2")->cluster, b_);
}

TEST_F(SessionTest, APrivateClusterIsFoundByAddressOnly) {
  publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  publish(b_, "127.0.0.1:2", "127.0.0.1:2", /*as_last=*/false);
  EXPECT_EQ(find_cluster("")->cluster, a_);
  EXPECT_EQ(find_cluster("127.0.0.1:2")->cluster, b_);
}

TEST_F(SessionTest, AHeadElsewhereIsReachedThroughTheNodeHere) {
  SessionInfo node = publish(a_, "127.0.0.1:7", "10.1.1.1:6399");
  const fs::path socket = node.dir / "node.sock";
  ASSERT_TRUE(write_file_atomic(socket, "", 0600).ok());
  auto found = find_cluster("10.1.1.1:6399");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->address, "127.0.0.1:7");
  EXPECT_EQ(found->unix_path, socket.string());
}

TEST_F(SessionTest, AnAddressElsewhereNeedsAToken) {
  EXPECT_EQ(find_cluster("10.1.1.1:6399").status().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(write_file_atomic(folder_.path() / "t", "secret\n", 0600).ok());
  support::ScopedVariable file("STARLING_TOKEN_FILE", (folder_.path() / "t").c_str());
  EXPECT_EQ(find_cluster("10.1.1.1:6399")->token, "secret");
  support::ScopedVariable token("STARLING_TOKEN", "more secret");
  EXPECT_EQ(find_cluster("10.1.1.1:6399")->token, "more secret");
}

TEST_F(SessionTest, ATokenIsTheSameHoweverItWasPutThere) {
  {
    support::ScopedVariable token("STARLING_TOKEN", " secret\n");
    EXPECT_EQ(*token_from_environment(), "secret");
  }
  {
    support::ScopedVariable token("STARLING_TOKEN", "    ");
    EXPECT_EQ(token_from_environment().status().message(),
              "STARLING_TOKEN is blank; set it to the cluster's token, or unset it");
  }
  const std::string pipe = (folder_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  support::ScopedVariable file("STARLING_TOKEN_FILE", pipe.c_str());
  EXPECT_EQ(token_from_environment().status().message(),
            "STARLING_TOKEN_FILE: " + pipe + " is not a file");
}

TEST_F(SessionTest, RemovingTheLastOneFallsBackToItsCluster) {
  SessionInfo head = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  SessionInfo other = publish(b_, "127.0.0.1:3", "127.0.0.1:3");
  SessionInfo node = publish(a_, "127.0.0.1:2", "127.0.0.1:1");
  remove_session(node.dir);
  die(node);
  EXPECT_EQ(find_cluster("")->address, "127.0.0.1:1");
  EXPECT_TRUE(fs::exists(head.dir.parent_path() / "token"));
  remove_session(head.dir);
  EXPECT_FALSE(fs::exists(head.dir.parent_path() / "token"));
  EXPECT_TRUE(fs::exists(head.dir / "logs"));
  EXPECT_EQ(find_cluster("")->cluster, b_);  // the only one left
}

TEST_F(SessionTest, DeadNodesAreForgottenByTheNextStart) {
  const SessionInfo dead = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  ASSERT_TRUE(write_file_atomic(dead.dir / "node.sock", "", 0600).ok());
  ASSERT_TRUE(make_private_folder(dead.dir / "journal").ok());
  die(dead);
  // Those who only look see that it is dead, and change nothing.
  EXPECT_TRUE(running_sessions().empty());
  EXPECT_EQ(find_cluster("").status().code(), ErrorCode::kNotFound);
  for (const char* file : {"node.json", "node.sock", "journal", "lock", "../token", "../../last"})
    EXPECT_TRUE(fs::exists(dead.dir / file)) << file;
  publish(b_, "127.0.0.1:2", "127.0.0.1:2", /*as_last=*/false);
  for (const char* file : {"node.json", "node.sock", "journal", "../token", "../../last"})
    EXPECT_FALSE(fs::exists(dead.dir / file)) << file;
  EXPECT_TRUE(fs::exists(dead.dir / "logs"));
}

TEST_F(SessionTest, LogsOfDeadNodesGoAfterAWeek) {
  const SessionInfo old = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  const SessionInfo young = publish(a_, "127.0.0.1:2", "127.0.0.1:1");
  remove_session(old.dir);
  remove_session(young.dir);
  die(old), die(young);
  age(old.dir);
  publish(b_, "127.0.0.1:3", "127.0.0.1:3");
  EXPECT_FALSE(fs::exists(old.dir));
  EXPECT_TRUE(fs::exists(young.dir / "logs"));
}

TEST_F(SessionTest, LogsOfDeadNodesHaveACommonLimit) {
  fs::create_directory(folder_.path() / "disk");
  if (::mount("none", (folder_.path() / "disk").c_str(), "tmpfs", 0, "size=8m,mode=0700") != 0)
    GTEST_SKIP() << "needs the right to mount";
  {
    support::ScopedVariable root("STARLING_SESSION_ROOT", (folder_.path() / "disk/s").c_str());
    std::vector<SessionInfo> dead;
    for (int i = 0; i < 5; ++i) {
      dead.push_back(publish(a_, "127.0.0.1:" + std::to_string(i), "127.0.0.1:1"));
      const fs::path log = dead.back().dir / "logs" / "node.log";
      ASSERT_TRUE(write_file_atomic(log, std::string(600 << 10, 'x'), 0600).ok());
      ASSERT_TRUE(write_file_atomic(dead.back().dir / "logs/worker-1.log", "", 0600).ok());
      // The last ones to be written are those of the first nodes.
      fs::last_write_time(log, fs::file_time_type::clock::now() + std::chrono::hours(5 - i));
    }
    for (const SessionInfo& node : dead) die(node);
    const SessionInfo next = publish(b_, "127.0.0.1:9", "127.0.0.1:9");
    // A quarter of the disk.
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fs::exists(dead[i].dir / "logs/node.log"), i < 3) << i;
    EXPECT_FALSE(fs::exists(dead[0].dir / "logs/worker-1.log")) << "nothing was written to it";
    EXPECT_TRUE(fs::exists(next.dir / "logs"));
    folders_.clear();
  }
  ::umount2((folder_.path() / "disk").c_str(), MNT_DETACH);
}

TEST_F(SessionTest, NoMoreThanTwoHundredDeadNodesKeepTheirLogs) {
  std::vector<SessionInfo> dead;
  for (int i = 0; i < 203; ++i) {
    SessionInfo info;
    info.cluster = a_;
    info.node = NodeId::random();
    info.dir = session_root() / a_.short_hex() / info.node.short_hex();
    if (i == 0) publish(a_, "127.0.0.1:1", "127.0.0.1:1");
    ASSERT_TRUE(make_private_folder(info.dir).ok());
    ASSERT_TRUE(make_private_folder(info.dir / "logs").ok());
    for (const char* file : {"lock", "logs/node.log"}) {
      ASSERT_TRUE(write_file_atomic(info.dir / file, "x", 0600).ok());
      fs::last_write_time(info.dir / file,
                          fs::file_time_type::clock::now() - std::chrono::minutes(i));
    }
    dead.push_back(info);
  }
  remove_dead_sessions();
  EXPECT_TRUE(fs::exists(dead[199].dir));
  for (int i = 200; i < 203; ++i) EXPECT_FALSE(fs::exists(dead[i].dir)) << i;
  EXPECT_EQ(running_sessions().size(), 1u) << "the living are not counted";
}

TEST_F(SessionTest, TheClusterOfAKilledProgramGoesWithTheNextStart) {
  publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  const fs::path dead = local_root(1), living = local_root(2), alone = local_root(3);
  std::optional<FileLock> program, node;
  for (const fs::path& root : {dead, living, alone}) {
    ASSERT_TRUE(make_session_root(root).ok());
    fs::create_directories(root / "01234567/89abcdef/spill");
  }
  program = *FileLock::of_file(living / kRootMark);
  node = *FileLock::of_file(alone / "01234567/89abcdef" / kNodeLock);
  fs::create_directory(local_root(4));  // without a mark
  fs::permissions(local_root(4), fs::perms::owner_all);
  publish(b_, "127.0.0.1:2", "127.0.0.1:2");
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living)) << "its program lives";
  EXPECT_TRUE(fs::exists(alone)) << "its node lives";
  EXPECT_TRUE(fs::exists(local_root(4)));
  node.reset();
  publish(b_, "127.0.0.1:3", "127.0.0.1:2");
  EXPECT_FALSE(fs::exists(alone));
}

TEST_F(SessionTest, AClusterThatBeginsIsNotTakenForADeadOne) {
  std::atomic<bool> stopping{false};
  std::thread cleaner([&] {
    while (!stopping) remove_dead_local_roots();
  });
  for (int i = 0; i < 300; ++i) {
    const auto made = make_local_root(i);
    EXPECT_TRUE(made.ok()) << made.status().message();
    EXPECT_TRUE(made.ok() && made->lock.is_of(made->path / kRootMark));
  }
  stopping = true;
  cleaner.join();
}

// As those that are process 1 of a container, where containers share the folder.
TEST_F(SessionTest, ProgramsOfOnePidHaveRootsOfTheirOwn) {
  const auto one = make_local_root(1), other = make_local_root(1);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status().message() << other.status().message();
  EXPECT_EQ(one->path, local_root(1));
  EXPECT_NE(other->path, one->path);
  remove_dead_local_roots();
  EXPECT_TRUE(fs::exists(one->path / kRootMark));
  EXPECT_TRUE(fs::exists(other->path / kRootMark));
}

// What another program's folder looks like, at the places where our folders lie.
TEST_F(SessionTest, RemovesNothingThatIsNotMarkedAsOurs) {
  const fs::path scratch = folder_.path() / "s";
  fs::create_directories(scratch / "alice" / "project");
  fs::create_directories(scratch / "01234567" / "89abcdef" / "logs");
  ASSERT_TRUE(write_file_atomic(scratch / "alice/project/results.csv", "1,2\n", 0644).ok());
  fs::permissions(scratch, fs::perms::all | fs::perms::sticky_bit);
  age(scratch);
  publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  EXPECT_EQ(session_root(), scratch / ("starling-" + std::to_string(::geteuid())));
  EXPECT_TRUE(fs::exists(scratch / "alice/project/results.csv"));
  EXPECT_TRUE(fs::exists(scratch / "01234567/89abcdef/logs"));
  EXPECT_EQ(mode_of(scratch), 01777u);

  // Right in our root, too: no lock of a node, a link with a node's name, other names.
  fs::create_directories(session_root() / "01234567" / "89abcdef" / "logs");
  fs::create_directories(session_root() / "notes" / "old");
  fs::create_directory_symlink(scratch / "alice", session_root() / "76543210");
  for (const char* folder : {"01234567", "01234567/89abcdef", "notes", "notes/old"})
    fs::permissions(session_root() / folder, fs::perms::owner_all);
  age(session_root());
  publish(b_, "127.0.0.1:2", "127.0.0.1:2");
  EXPECT_TRUE(fs::exists(session_root() / "01234567/89abcdef/logs"));
  EXPECT_TRUE(fs::exists(session_root() / "notes/old"));
  EXPECT_TRUE(fs::exists(scratch / "alice/project/results.csv"));
}

TEST_F(SessionTest, ARootIsKnownByItsMark) {
  const fs::path named = folder_.path() / "s";
  EXPECT_EQ(session_root(), named);  // not there yet: it is made
  publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  EXPECT_EQ(session_root(), named);
  fs::remove(named / kRootMark);
  EXPECT_EQ(session_root(), named) << "its node lives";
  EXPECT_TRUE(find_cluster("").ok());
  folders_.clear();
  EXPECT_NE(session_root(), named);
}

TEST_F(SessionTest, ALivingNodeKeepsTheRootThatItBeganWith) {
  const fs::path named = folder_.path() / "s";
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  // Each of them, then all: then nothing is left by which a command could tell.
  const std::vector<fs::path> files = {named / kRootMark, named / "last", info.dir / kNodeLock,
                                       info.dir.parent_path() / "token", info.dir / "node.json"};
  for (const fs::path& file : files) {
    ASSERT_TRUE(fs::remove(file)) << file;
    ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
    EXPECT_TRUE(fs::exists(file)) << file;
    EXPECT_EQ(find_cluster("")->address, "127.0.0.1:1") << file;
  }
  for (const fs::path& file : files) ASSERT_TRUE(fs::remove(file)) << file;
  EXPECT_NE(session_root(), named);
  const Status refreshed = folders_.at(info.dir).refresh();
  ASSERT_TRUE(refreshed.ok()) << refreshed.to_string();
  for (const fs::path& file : files) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_EQ(find_cluster("")->address, "127.0.0.1:1");
  EXPECT_FALSE(fs::exists(named / ("starling-" + std::to_string(::geteuid()))));
  // Another start meanwhile makes no second root.
  ASSERT_TRUE(fs::remove(named / kRootMark));
  publish(b_, "127.0.0.1:2", "127.0.0.1:2");
  EXPECT_TRUE(fs::exists(named / kRootMark));
  EXPECT_EQ(find_sessions()->size(), 2u);
  // What ends forgets itself where it was.
  ASSERT_TRUE(fs::remove(named / kRootMark));
  remove_session(info.dir);
  EXPECT_FALSE(fs::exists(info.dir.parent_path() / "token"));
}

TEST_F(SessionTest, ARootThatWasRemovedIsMadeAgain) {
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  fs::remove_all(folder_.path() / "s");
  const Status refreshed = folders_.at(info.dir).refresh();
  ASSERT_TRUE(refreshed.ok()) << refreshed.to_string();
  EXPECT_EQ(find_cluster("")->address, "127.0.0.1:1");
  EXPECT_EQ(mode_of(folder_.path() / "s"), 0700u);
}

TEST_F(SessionTest, FoldersThatOthersCanEnterAreRefusedAndStayAsTheyAre) {
  fs::create_directory(folder_.path() / "s");
  fs::create_directory(session_root());
  fs::permissions(session_root(), static_cast<fs::perms>(0755));
  const auto made = SessionFolder::create(a_, NodeId::random(), "t");
  EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(made.status().message().find("chmod 700"), std::string::npos)
      << made.status().message();
  EXPECT_EQ(mode_of(session_root()), 0755u);
  EXPECT_EQ(find_cluster("").status().code(), ErrorCode::kInvalidArgument);
}

// Nodes live in it: another root next to it would hide them.
TEST_F(SessionTest, ARootThatWasOpenedSinceIsRefusedByName) {
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  const fs::path root = session_root();
  fs::permissions(root, static_cast<fs::perms>(0755));
  EXPECT_EQ(session_root(), root);
  for (const Status& status : {find_cluster("").status(), find_sessions().status(),
                               SessionFolder::create(a_, NodeId::random(), "t").status()}) {
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.message().find("chmod 700"), std::string::npos) << status.message();
  }
  EXPECT_EQ(mode_of(root), 0755u);
}

TEST_F(SessionTest, AnotherUsersRootIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  // A node of "another user", complete with a lock that is held.
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  ASSERT_EQ(::chown((folder_.path() / "s").c_str(), 65534, 65534), 0);
  support::ScopedVariable base("STARLING_SESSION_ROOT", nullptr);
  support::ScopedVariable runtime("XDG_RUNTIME_DIR", folder_.path().c_str());
  fs::rename(folder_.path() / "s", session_root());
  for (const Status& status : {find_cluster("").status(), find_sessions().status(),
                               SessionFolder::create(a_, NodeId::random(), "t").status()}) {
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(status.message().find("belongs to user 65534"), std::string::npos)
        << status.message();
  }
  EXPECT_TRUE(running_sessions().empty());
}

TEST_F(SessionTest, AClustersFolderThatWasOpenedIsNamedWhereNoClusterIsFound) {
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  const fs::path cluster = info.dir.parent_path();
  fs::permissions(cluster, fs::perms(0755));
  const std::string none = find_cluster("").status().message();
  EXPECT_NE(none.find(cluster.string() + " is open to other users (mode 755): chmod 700 it"),
            std::string::npos)
      << none;
  fs::permissions(cluster, fs::perms(0700));
  EXPECT_TRUE(find_cluster("").ok());
}

TEST_F(SessionTest, ATokenThatWasTakenAwayIsSaidToComeBack) {
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  fs::remove(info.dir.parent_path() / "token");
  const std::string gone = find_cluster("").status().message();
  EXPECT_NE(gone.find("a living node puts it back within 30 s"), std::string::npos) << gone;
}

// A container that shares the folder has other pids.
TEST_F(SessionTest, ALookFromAnotherPidNamespaceSeesTheNodeAlive) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make a PID namespace";
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  const pid_t child = ::fork();
  if (child == 0) {
    folders_.clear();  // a forked child would hold the locks, too
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
    const pid_t inside = ::fork();
    if (inside == 0) {
      const bool sees = running_sessions().size() == 1 && find_cluster("").ok();
      const bool spares = kill_node(info).code() == ErrorCode::kInvalidArgument;
      ::_exit(sees && spares ? 0 : 1);
    }
    int status = 0;
    ::waitpid(inside, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no PID namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(fs::exists(info.dir / "node.json"));
}

TEST_F(SessionTest, WhatACleanerTookAwayIsPutBack) {
  const SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  for (const fs::path& file : {info.dir / "node.json", info.dir / "lock",
                               info.dir.parent_path() / "token", session_root() / "last"})
    ASSERT_TRUE(fs::remove(file)) << file;
  EXPECT_EQ(find_cluster("").status().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
  EXPECT_EQ(find_cluster("")->token, "token-of-" + a_.short_hex());
  EXPECT_EQ(last_session(), info.dir.string());
  // The token alone: the lock is still held.
  ASSERT_TRUE(fs::remove(info.dir.parent_path() / "token"));
  ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
  EXPECT_TRUE(find_cluster("").ok());
  age(info.dir);
  ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
  EXPECT_GT(fs::last_write_time(info.dir / "node.json"),
            fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST_F(SessionTest, AKillNamesTheProcessThatItMeans) {
  SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  info.pid_start += 1;  // the pid belongs to another process by now
  EXPECT_EQ(kill_node(info).code(), ErrorCode::kNotFound);
  info.pid_scope = "another boot pid:[1]";
  info.host = "elsewhere";
  EXPECT_NE(kill_node(info).message().find("runs on elsewhere"), std::string::npos);
}

TEST_F(SessionTest, SurvivesDamagedFiles) {
  SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  for (const char* content : {"", "{", "[1,2]", "{\"cluster\": 5}", "\xff\xfe"}) {
    ASSERT_TRUE(write_file_atomic(info.dir / "node.json", content, 0600).ok());
    EXPECT_TRUE(running_sessions().empty()) << content;
  }
  const std::string cluster = a_.hex(), node = info.node.hex();
  for (const std::string other : {R"("yes")", "{}", "null", "[1]"}) {
    const std::string content = R"({"cluster": ")" + cluster + R"(", "node": ")" + node +
                                R"(", "is_head": )" + other + R"(, "pid": )" + other +
                                R"(, "address": )" + other + "}";
    ASSERT_TRUE(write_file_atomic(info.dir / "node.json", content, 0600).ok());
    const auto read = read_session(info.dir);
    ASSERT_TRUE(read) << content;
    EXPECT_FALSE(read->is_head) << content;
  }
  // Its node puts it right, whatever became of it.
  ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
  EXPECT_EQ(running_sessions().size(), 1u);
  ASSERT_TRUE(fs::remove(info.dir / "node.json"));
  fs::create_symlink("/etc/passwd", info.dir / "node.json");
  ASSERT_TRUE(folders_.at(info.dir).refresh().ok());
  EXPECT_EQ(running_sessions().size(), 1u);
}

TEST(CacheFolder, IsNeverOneThatOtherUsersShare) {
  support::TemporaryFolder folder;
  const fs::path cache = folder.path() / "c";
  support::ScopedVariable named("STARLING_CACHE", cache.c_str());
  ASSERT_TRUE(cache_folder().ok());  // not there yet
  ASSERT_TRUE(make_cache_folder(cache / "files").ok());
  ASSERT_TRUE(cache_folder().ok());
  fs::permissions(cache, static_cast<fs::perms>(0777));
  EXPECT_EQ(cache_folder().status().code(), ErrorCode::kInvalidArgument);
  if (::geteuid() != 0) return;
  fs::permissions(cache, static_cast<fs::perms>(0755));
  ASSERT_EQ(::chown(cache.c_str(), 65534, 65534), 0);
  EXPECT_EQ(cache_folder().status().code(), ErrorCode::kInvalidArgument);
}

TEST(CacheFolder, IsUsableWhateverTheUmask) {
  support::TemporaryFolder folder;
  for (const mode_t mask : {0000, 0002, 0077}) {
    const fs::path cache = folder.path() / std::to_string(mask);
    support::ScopedVariable named("STARLING_CACHE", cache.c_str());
    const mode_t before = ::umask(mask);
    const Status made = make_cache_folder(cache / "programs");
    const Status within = make_folder_in_cache(cache / "programs" / "1");
    ::umask(before);
    EXPECT_TRUE(made.ok()) << made.to_string();
    EXPECT_TRUE(within.ok()) << within.to_string();
    EXPECT_TRUE(check_cache_folder(cache / "programs").ok());
    EXPECT_TRUE(cache_folder().ok());
    EXPECT_TRUE(check_unshared_folder(cache / "programs").ok());
    if (::geteuid() == 0) {
      EXPECT_NE(fs::status(cache).permissions() & fs::perms::others_exec, fs::perms::none) << mask;
    }
  }
}

TEST(CacheFolder, IsKnownByAMarkOfThisUsers) {
  support::TemporaryFolder folder;
  const fs::path made = folder.path() / "files", empty = folder.path() / "empty";
  ASSERT_TRUE(make_cache_folder(made).ok());
  ASSERT_TRUE(write_file_atomic(made / "x", "", 0600).ok());
  EXPECT_TRUE(check_cache_folder(made).ok());
  EXPECT_TRUE(make_cache_folder(made).ok()) << "again";
  EXPECT_EQ(check_cache_folder(empty).code(), ErrorCode::kNotFound);
  fs::create_directory(empty);
  fs::permissions(empty, static_cast<fs::perms>(0700));
  EXPECT_EQ(check_cache_folder(empty).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(make_cache_folder(empty).ok());
  EXPECT_EQ(fs::status(empty).permissions(), static_cast<fs::perms>(0700));
  // A mark that others could have put there is none.
  fs::remove(made / kCacheMark);
  EXPECT_EQ(make_cache_folder(made).code(), ErrorCode::kInvalidArgument);
  fs::create_symlink(empty / kCacheMark, made / kCacheMark);
  EXPECT_EQ(make_cache_folder(made).code(), ErrorCode::kInvalidArgument);
  fs::remove(made / kCacheMark);
  ASSERT_TRUE(write_file_atomic(made / kCacheMark, "", 0600).ok());
  EXPECT_TRUE(make_cache_folder(made).ok());
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown((made / kCacheMark).c_str(), 65534, 65534), 0);
  EXPECT_EQ(make_cache_folder(made).code(), ErrorCode::kInvalidArgument);
}

TEST(HomeFolder, IsNotTheTemporaryFolder) {
  support::ScopedVariable home("HOME", nullptr);
  const auto found = home_folder("STARLING_CACHE");
  if (found.ok())
    EXPECT_FALSE(found->string().starts_with("/tmp"));
  else
    EXPECT_NE(found.status().message().find("STARLING_CACHE"), std::string::npos);
}

TEST(ProcessStartTime, TellsProcessesApart) {
  EXPECT_GT(process_start_time(::getpid()), 0u);
  EXPECT_EQ(process_start_time(999999999), 0u);
}

}  // namespace
}  // namespace runtime
