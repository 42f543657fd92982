// A driver in the test's process, with its own cluster whose workers run this very program.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "test_actors.h"
#include "test_tasks.h"
#include "tests/support/eventually.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace runtime::test {

inline const std::string kBin = STARLING_BIN_DIR;

using support::eventually;
using support::expect_failure;

using namespace std::chrono_literals;

class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override { start({"--num-cpus", "4"}); }
  void start(std::vector<std::string> start_arguments) {
    ::unsetenv("STARLING_ADDRESS");
    ::setenv("STARLING_PROGRAM", STARLING_BIN_DIR "/starling", 1);
    ::setenv("STARLING_SESSION_ROOT", (root_ / "s").c_str(), 1);
    static char name[] = "test_runtime_actor";
    static char* argv[] = {name, nullptr};
    RuntimeOptions options;
    options.start_arguments = std::move(start_arguments);
    rt_ = std::make_unique<Runtime>(1, argv, options);
    register_test_actors(*rt_);
    register_test_tasks(*rt_);
    Status status = rt_->start();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void TearDown() override { rt_.reset(); }

  template <class T, class... Args>
  ActorHandle<T> make(const ActorOptions& options = {}, const Args&... args) {
    auto made = rt_->spawn<T>(options, args...);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.value_or(ActorHandle<T>());
  }
  ActorHandle<Counter> counter(int start = 0, const ActorOptions& options = {}) {
    return make<Counter>(options, start);
  }
  ActorHandle<Broker> broker(const std::string& name, const ActorOptions& options = {}) {
    return make<Broker>(options, name);
  }
  template <class T>
  T get(const ObjectRef<T>& ref) {
    Result<T> value = rt_->get(ref, 20s);
    EXPECT_TRUE(value.ok()) << value.status().to_string();
    return value.ok() ? *value : T();
  }
  /// What the head's node shows as the value of a metric, by its name and perhaps labels; -1: there
  /// is none.
  double metric(const std::string& name) {
    std::istringstream shown(
        run({STARLING_BIN_DIR "/starling", "metrics", "--address", address()}).output);
    for (std::string line; std::getline(shown, line);) {
      if (line.starts_with(name)) return std::strtod(line.c_str() + line.rfind(' '), nullptr);
    }
    return -1;
  }
  /// Waits until `count` calls are in line before actors of the class.
  bool has_in_line(const std::string& class_name, int calls) {
    return eventually(
        [&] { return metric("starling_calls_waiting{class=\"" + class_name + "\"}") >= calls; });
  }
  /// HOST:PORT of the cluster's head.
  std::string address() {
    auto state = rt_->cluster().state();
    return state.ok() && !state->nodes.empty() ? state->nodes[0].address : "";
  }

  support::TemporaryFolder folder_;
  const std::filesystem::path& root_ = folder_.path();
  std::unique_ptr<Runtime> rt_;
};

}  // namespace runtime::test
