#include "runtime/node/session.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/node/file_util.h"
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
    auto dir = create_session(cluster, info.node, "token-of-" + cluster.short_hex());
    EXPECT_TRUE(dir.ok()) << dir.status().message();
    info.dir = *dir;
    EXPECT_TRUE(publish_session(info, as_last).ok());
    return info;
  }

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
  fs::create_symlink(folder_.path() / "elsewhere", folder_.path() / "s");
  EXPECT_EQ(create_session(a_, NodeId::random(), "t").status().code(), ErrorCode::kInvalidArgument);
}

TEST_F(SessionTest, RefusesFoldersTooLongForSockets) {
  std::string lengthy = (folder_.path() / std::string(60, 'x')).string();
  support::ScopedVariable root("STARLING_SESSION_ROOT", lengthy.c_str());
  auto made = create_session(a_, NodeId::random(), "t");
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
  auto found = find_cluster("10.1.1.1:6399");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->address, "127.0.0.1:7");
  EXPECT_EQ(found->unix_path, (node.dir / "node.sock").string());
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
  EXPECT_EQ(find_cluster("")->address, "127.0.0.1:1");
  EXPECT_TRUE(fs::exists(head.dir.parent_path() / "token"));
  remove_session(head.dir);
  EXPECT_FALSE(fs::exists(head.dir.parent_path() / "token"));
  EXPECT_TRUE(fs::exists(head.dir / "logs"));
  EXPECT_EQ(find_cluster("")->cluster, b_);  // the only one left
}

TEST_F(SessionTest, DeadNodesAreForgotten) {
  SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  info.pid_start += 1;  // the pid belongs to another process by now
  ASSERT_TRUE(publish_session(info, true).ok());
  ASSERT_TRUE(write_file_atomic(info.dir / "node.sock", "", 0600).ok());
  EXPECT_TRUE(running_sessions().empty());
  EXPECT_FALSE(fs::exists(info.dir / "node.sock"));
  EXPECT_FALSE(fs::exists(info.dir.parent_path() / "token"));
  EXPECT_FALSE(fs::exists(session_root() / "last"));
}

TEST_F(SessionTest, SurvivesDamagedFiles) {
  SessionInfo info = publish(a_, "127.0.0.1:1", "127.0.0.1:1");
  for (const char* content : {"", "{", "[1,2]", "{\"cluster\": 5}", "\xff\xfe"}) {
    ASSERT_TRUE(write_file_atomic(info.dir / "node.json", content, 0600).ok());
    EXPECT_TRUE(running_sessions().empty()) << content;
  }
}

TEST(ProcessStartTime, TellsProcessesApart) {
  EXPECT_GT(process_start_time(::getpid()), 0u);
  EXPECT_EQ(process_start_time(999999999), 0u);
}

}  // namespace
}  // namespace runtime
