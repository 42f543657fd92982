// Nodes as processes of this machine. In the place of the program `starling` is a shell, which has
// the same arguments: in a folder with a file "start", `sh start --address ...` runs that.
#include "placement/autoscaler/local_provider.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "runtime/process/spawn.h"
#include "tests/support/file_bytes.h"
#include "tests/support/on_loop.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/turned_clock.h"

namespace placement {
namespace {

using namespace std::chrono_literals;
using runtime::run_on;
using runtime::Status;

using NodeIds = std::vector<std::string>;

/// The folder that the nodes of a cluster of this process alone run in, while it lives.
class NodeFolder {
 public:
  NodeFolder() {
    // Starts a node and waits for it, as `starling start` does. A node ends with its folder.
    std::ofstream(folder_.path() / "start") << R"(
      if [ -e refuse ]; then echo "no room for it" >&2; exit 3; fi
      while [ -e hang ]; do sleep 0.02; done
      if [ -z "$IS_NODE" ]; then
        IS_NODE=1 setsid sh start "$@" >/dev/null 2>&1 &
        until [ -e up ]; do sleep 0.02; done
        exit 0
      fi
      if [ -e stubborn ]; then trap '' TERM; fi
      echo "$STARLING_TOKEN_FILE" > token_file
      : > up
      while [ -e start ]; do sleep 0.02; done
    )";
    std::filesystem::current_path(folder_.path());
  }
  ~NodeFolder() { std::filesystem::current_path(before_); }
  NodeFolder(const NodeFolder&) = delete;
  NodeFolder& operator=(const NodeFolder&) = delete;

  /// A file that the script looks for.
  void make(const std::string& file) const { std::ofstream(folder_.path() / file).flush(); }
  std::string content(const std::string& file) const {
    return support::content_of(folder_.path() / file);
  }
  NodeStart start() const {
    NodeStart start;
    start.program = "/bin/sh";
    start.address = address;
    start.token_file = "/run/token";
    return start;
  }
  static NodeRequest request(const std::string& id) {
    NodeRequest request;
    request.id = id;
    request.type.resources = *Resources::from_map({{"CPU", 2}});
    request.labels = {{std::string(kAutoscalerIdLabel), id}};
    return request;
  }
  /// A node that is up. Its end is to be waited for.
  runtime::SpawnedProcess run(const std::string& id) const {
    std::filesystem::remove(folder_.path() / "up");
    runtime::SpawnSpec spec;
    spec.program = "/bin/sh";
    spec.argv = start_arguments(start(), request(id));
    spec.argv.insert(spec.argv.begin(), "/bin/sh");
    spec.environment = {"IS_NODE=1", "PATH=/usr/bin:/bin"};
    spec.working_dir = folder_.path().string();
    auto process = runtime::spawn_process(spec);
    EXPECT_TRUE(process.ok()) << process.status().to_string();
    EXPECT_TRUE(
        support::eventually([&] { return std::filesystem::exists(folder_.path() / "up"); }));
    return process.ok() ? *std::move(process) : runtime::SpawnedProcess();
  }

  const std::string address = "10.0.0.1:" + std::to_string(::getpid());

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const support::TemporaryFolder folder_;
};

class LocalProviderTest : public ::testing::Test {
 protected:
  ~LocalProviderTest() override {
    run_on(loop_, [&] { provider_.reset(); });
  }
  void make(std::chrono::milliseconds start_limit = 20s) {
    run_on(loop_, [&] {
      provider_ = std::make_unique<LocalProvider>(loop_, start_limit, folder_.start());
    });
  }
  /// Waits for the answer.
  Status add(const std::string& id) {
    return runtime::wait_done(loop_, runtime::deadline_after(20s), [&](auto done) {
      loop_.post([this, id, done] { provider_->add(NodeFolder::request(id), done); });
    });
  }
  Status remove(const std::string& id) {
    return runtime::wait_done(loop_, runtime::deadline_after(20s), [&](auto done) {
      loop_.post([this, id, done] { provider_->remove(id, done); });
    });
  }
  NodeIds list() {
    auto ids = runtime::wait_for<NodeIds>(loop_, runtime::deadline_after(20s), [&](auto done) {
      loop_.post([this, done] { provider_->list(done); });
    });
    EXPECT_TRUE(ids.ok()) << ids.status().to_string();
    return ids.ok() ? *ids : NodeIds();
  }

  NodeFolder folder_;
  runtime::EventLoop loop_;
  std::unique_ptr<LocalProvider> provider_;
};

TEST_F(LocalProviderTest, StartsANodeAndKnowsItAgain) {
  make();
  EXPECT_EQ(list(), NodeIds{});
  const Status added = add("w-1");
  EXPECT_TRUE(added.ok()) << added.to_string();
  EXPECT_EQ(list(), NodeIds{"w-1"});
  EXPECT_EQ(folder_.content("token_file"), "/run/token\n");
  make();  // as after a crash
  EXPECT_EQ(list(), NodeIds{"w-1"});
  EXPECT_TRUE(remove("w-1").ok());
  EXPECT_EQ(list(), NodeIds{});
}

TEST_F(LocalProviderTest, AskedForANodeThatItHasItStartsNone) {
  make();
  const auto node = folder_.run("w-1");
  folder_.make("refuse");
  EXPECT_TRUE(add("w-1").ok());
  EXPECT_EQ(add("w-2"), runtime::task_failed("starling start exited with code 3: no room for it"));
}

TEST_F(LocalProviderTest, AStartMayTakeSoLong) {
  folder_.make("hang");
  make(50ms);
  EXPECT_EQ(add("w-1").code(), runtime::ErrorCode::kDeadlineExceeded);
}

TEST_F(LocalProviderTest, WhatItAbandonsIsNotAnswered) {
  folder_.make("hang");
  make();
  run_on(loop_,
         [&] { provider_->add(NodeFolder::request("w-1"), [](const Status&) { ADD_FAILURE(); }); });
  EXPECT_EQ(list(), NodeIds{"w-1"}) << "it is being started";
  run_on(loop_, [&] { provider_->abandon(); });
  EXPECT_TRUE(support::eventually([&] { return list().empty(); }));
}

TEST_F(LocalProviderTest, ListsNodesOfItsClusterOnce) {
  make();
  const auto first = folder_.run("w-2");
  const auto again = folder_.run("w-2");
  const auto second = folder_.run("w-1");
  EXPECT_EQ(list(), (NodeIds{"w-1", "w-2"}));
  NodeStart elsewhere = folder_.start();
  elsewhere.address += "1";
  run_on(loop_, [&] { provider_ = std::make_unique<LocalProvider>(loop_, 1s, elsewhere); });
  EXPECT_EQ(list(), NodeIds{});
}

TEST_F(LocalProviderTest, RemovesTheNodeThatIsMeant) {
  make();
  const auto first = folder_.run("w-1");
  const auto second = folder_.run("w-12");
  EXPECT_TRUE(remove("w-1").ok());
  EXPECT_TRUE(first.ended()) << "it is gone by the answer";
  EXPECT_EQ(list(), NodeIds{"w-12"});
  EXPECT_TRUE(remove("w-1").ok()) << "one that is not there is no error";
  EXPECT_FALSE(second.ended());
}

// -- On a turned clock: the nodes are separate processes.

TEST(LocalProvider, KillsANodeThatDoesNotEndWhenItIsTold) {
  NodeFolder folder;
  folder.make("stubborn");
  const auto node = folder.run("w-1");
  support::TurnedClock clock;
  runtime::EventLoop loop;
  LocalProvider provider(loop, 1s, folder.start());
  std::optional<Status> removed, absent;
  provider.remove("w-1", [&](const Status& status) { removed = status; });
  provider.remove("w-2", [&](const Status& status) { absent = status; });
  EXPECT_FALSE(absent) << "never from inside of the call";
  clock.settle();
  EXPECT_EQ(absent, Status());
  clock.turn(4900ms);
  EXPECT_FALSE(removed);
  EXPECT_FALSE(node.ended()) << "it has five seconds to end by itself";
  clock.turn(100ms);
  ASSERT_TRUE(support::eventually([&] { return node.ended().has_value(); }));
  EXPECT_EQ(node.ended()->signal, SIGKILL);
  clock.turn(50ms);
  EXPECT_EQ(removed, Status());
}

TEST(LocalProvider, AnswersNothingAfterItsEnd) {
  NodeFolder folder;
  folder.make("stubborn");
  const auto node = folder.run("w-1");
  support::TurnedClock clock;
  runtime::EventLoop loop;
  auto provider = std::make_unique<LocalProvider>(loop, 1s, folder.start());
  provider->remove("w-1", [](const Status&) { ADD_FAILURE(); });
  clock.settle();
  provider.reset();
  clock.turn(1h);
  EXPECT_FALSE(node.ended()) << "no clock kills it any more";
}

}  // namespace
}  // namespace placement
