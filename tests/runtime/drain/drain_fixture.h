// A head, nodes that can leave, and a driver in the test's process.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "drain_actors.h"
#include "tests/runtime/actor/command.h"
#include "tests/support/eventually.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {

using support::eventually;

using namespace std::chrono_literals;

inline const std::string kStarling = STARLING_BIN_DIR "/starling";
inline constexpr std::uint64_t kLarge = 100'000;  // floats: in a store

struct TestNode {
  std::unique_ptr<Command> process;
  NodeId id;
  std::string address;
};

class DrainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_SESSION_ROOT", (folder_.path() / "s").c_str(), 1);
    head_ = std::make_unique<Command>(std::vector<std::string>{
        kStarling, "start", "--head", "--port", "0", "--num-cpus", "2", "--block"});
    ASSERT_TRUE(eventually([&] { return head_->output().find("127.0.0.1:") != std::string::npos; }))
        << head_->output();
    const std::string said = head_->output();
    const std::size_t at = said.rfind("127.0.0.1:");
    address_ = said.substr(at, said.find_first_not_of("0123456789.:", at) - at);
    static char name[] = "test_runtime_drain";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.address = address_;
    rt_ = std::make_unique<Runtime>(1, argv, options);
    register_drain_actors(*rt_);
    Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override {
    rt_.reset();
    head_->signal(SIGTERM);
    head_->wait();
  }

  std::vector<NodeInfo> nodes() {
    auto list = rt_->cluster().nodes(20s);
    EXPECT_TRUE(list.ok()) << list.status().to_string();
    return list.value_or(std::vector<NodeInfo>());
  }
  std::optional<NodeInfo> node(const NodeId& id) {
    for (const NodeInfo& info : nodes()) {
      if (info.node == id) return info;
    }
    return std::nullopt;
  }
  /// With two CPUs and as many of the resource "far" as `far`.
  [[nodiscard]] TestNode add_node(int far = 4, std::vector<std::string> more = {}) {
    std::vector<NodeId> before;
    for (const NodeInfo& info : nodes()) before.push_back(info.node);
    std::vector<std::string> arguments{
        kStarling,    "start", "--address",   address_,
        "--num-cpus", "2",     "--resources", "{\"far\": " + std::to_string(far) + "}",
        "--block"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    TestNode added{std::make_unique<Command>(arguments), {}, ""};
    EXPECT_TRUE(eventually([&] {
      for (const NodeInfo& info : nodes()) {
        if (std::find(before.begin(), before.end(), info.node) != before.end()) continue;
        added.id = info.node;
        added.address = info.address;
      }
      return !added.id.is_none();
    })) << added.process->output();
    return added;
  }
  CommandResult drain(const TestNode& node, const std::string& deadline = "20s",
                      std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{kStarling,    "drain",  node.id.hex(), "--address", address_,
                                       "--deadline", deadline, "--reason",    "preemption"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  bool has_left(const TestNode& which, std::chrono::milliseconds patience = 20s) {
    return eventually([&] { return !node(which.id); }, patience);
  }
  /// Where the resource "far" is.
  static ActorOptions far(std::int32_t max_restarts = 0) {
    ActorOptions options;
    options.cpus = 0;
    options.resources["far"] = 1;
    options.max_restarts = max_restarts;
    return options;
  }
  template <class T, class... Args>
  ActorHandle<T> make(const ActorOptions& options, const Args&... args) {
    auto made = rt_->spawn<T>(options, args...);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<T>());
  }
  template <class T>
  T get(const ObjectRef<T>& ref) {
    Result<T> value = rt_->get(ref, 30s);
    EXPECT_TRUE(value.ok()) << value.status().to_string();
    return value.ok() ? *value : T();
  }
  template <class T>
  ActorState state_of(const ActorHandle<T>& actor) {
    auto cluster = rt_->cluster().state(20s);
    EXPECT_TRUE(cluster.ok()) << cluster.status().to_string();
    for (const ActorState& state : cluster.ok() ? cluster->actors : std::vector<ActorState>()) {
      if (state.actor == actor.id()) return state;
    }
    return {};
  }
  /// The head's own process, which its node has started; 0: there is none now.
  pid_t head_process() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream line(entry.path() / "cmdline");
      const std::string words((std::istreambuf_iterator<char>(line)), {});
      const bool is_head = words.find("--socket") != std::string::npos &&
                           words.find(folder_.path().string()) != std::string::npos;
      if (is_head) return std::stoi(entry.path().filename().string());
    }
    return 0;
  }

  support::TemporaryFolder folder_;
  std::unique_ptr<Command> head_;
  std::string address_;
  std::unique_ptr<Runtime> rt_;
};

}  // namespace runtime::test
