// A driver in the test's process, on its own cluster with further nodes on this machine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/actor/command.h"
#include "tests/runtime/sharing/sharing_actors.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {

using support::eventually;
using support::expect_failure;

using namespace std::chrono_literals;

class SharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_PROGRAM", STARLING_BIN_DIR "/starling", 1);
    ::setenv("STARLING_SESSION_ROOT", (root_ / "s").c_str(), 1);
    static char name[] = "test_runtime_sharing";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.name_space = "shared";
    options.start_arguments = {"--num-cpus", "8"};
    rt_ = std::make_unique<Runtime>(1, argv, options);
    register_sharing_actors(*rt_);
    Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override {
    rt_.reset();
    nodes_.clear();
  }

  std::vector<NodeInfo> nodes() {
    auto state = rt_->cluster().state();
    return state.ok() ? std::move(state->nodes) : std::vector<NodeInfo>();
  }
  std::string address() {
    for (const NodeInfo& node : nodes()) {
      if (node.is_head) return node.address;
    }
    return "";
  }
  /// Adds a node to the cluster and waits until it is there.
  NodeId add_node() {
    std::vector<NodeId> before;
    for (const NodeInfo& node : nodes()) before.push_back(node.node);
    nodes_.push_back(std::make_unique<Command>(
        std::vector<std::string>{STARLING_BIN_DIR "/starling", "start", "--address", address(),
                                 "--num-cpus", "8", "--block"}));
    NodeId added;
    EXPECT_TRUE(eventually([&] {
      for (const NodeInfo& node : nodes()) {
        if (std::find(before.begin(), before.end(), node.node) == before.end()) added = node.node;
      }
      return !added.is_none();
    })) << nodes_.back()->output();
    return added;
  }
  ActorHandle<Keeper> keeper(NodeId node = {}, ActorOptions options = {}) {
    if (!node.is_none()) options.node = node;
    options.cpus = 0.1;
    auto made = rt_->spawn<Keeper>(options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<Keeper>());
  }
  /// kill -9 of its process.
  template <class T>
  void crash(const ActorHandle<T>& actor) {
    const int pid = actor.pid();
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    EXPECT_TRUE(eventually([&] {
      return rt_->get(actor.call(&T::pid), 5s).status().code() == ErrorCode::kActorDied;
    }));
  }
  /// This program as another driver.
  std::unique_ptr<Command> program(std::vector<std::string> words) {
    words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
    words.insert(words.end(), {"--address", address()});
    return std::make_unique<Command>(words);
  }
  template <class T>
  T get(const ObjectRef<T>& ref) {
    Result<T> value = rt_->get(ref, 60s);
    EXPECT_TRUE(value.ok()) << value.status().to_string();
    return value.ok() ? *value : T();
  }
  void get(const ObjectRef<void>& ref) {
    Status status = rt_->get(ref, 60s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  ObjectList refs() {
    auto list = rt_->objects().list(20s);
    EXPECT_TRUE(list.ok()) << list.status().to_string();
    return list.value_or(ObjectList());
  }
  static std::string describe(const ObjectList& list) {
    std::string text;
    for (const ObjectInfo& object : list.objects) {
      text += object.id.short_hex() + " of " + object.owner + " (pid " +
              std::to_string(object.owner_pid) + "): handles " + std::to_string(object.handles) +
              " lent " + std::to_string(object.lent) + " held " + std::to_string(object.held) +
              " readers " + std::to_string(object.readers) + " borrowers " +
              std::to_string(object.borrowers.size()) + " published " +
              std::to_string(object.published.size()) + " copies " +
              std::to_string(object.copies.size()) + "\n";
      for (const ObjectBorrower& borrower : object.borrowers)
        text += "  " + borrower.name + " pid " + std::to_string(borrower.pid) + " on " +
                borrower.node.short_hex() + "\n";
    }
    for (const StoreInfo& store : list.stores) {
      text += "store " + store.node.short_hex() + ": leased " + std::to_string(store.leased_bytes) +
              " orphaned " + std::to_string(store.orphaned_bytes) + " replicas " +
              std::to_string(store.replica_bytes) + " published " +
              std::to_string(store.published_bytes) + " pins " + std::to_string(store.pins) +
              " borrows " + std::to_string(store.borrows) + "\n";
    }
    return text;
  }
  /// The cluster holds no object, and its stores nothing but slabs that processes keep for their
  /// next ones.
  static bool is_empty(const ObjectList& list) {
    for (const StoreInfo& store : list.stores) {
      if (store.orphaned_bytes + store.replica_bytes + store.published_bytes + store.spilled_bytes +
              store.pins + store.borrows >
          0)
        return false;
    }
    return list.objects.empty();
  }

  support::TemporaryFolder folder_;
  const std::filesystem::path& root_ = folder_.path();
  std::vector<std::unique_ptr<Command>> nodes_;
  std::unique_ptr<Runtime> rt_;
};

}  // namespace runtime::test
