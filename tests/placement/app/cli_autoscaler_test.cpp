#include "placement/app/cli_autoscaler.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "placement/autoscaler/autoscaler.h"
#include "runtime/core/clock.h"
#include "tests/placement/app/fake_cluster.h"
#include "tests/support/file_bytes.h"
#include "tests/support/in_child.h"

namespace placement {
namespace {

namespace control = runtime::control;

class AutoscalerStatus : public ::testing::Test {
 protected:
  /// The status in the cluster's store.
  template <class Value>
  void keep(Value value) {
    cluster_.on<control::KvGet>([value](const control::KvGet& request) {
      EXPECT_EQ(request.key, kStatusKey);
      return value;
    });
  }
  Said status(bool json = false) {
    return said_by([&] { return autoscaler_status_command(cluster_.address(), json); });
  }
  static std::int64_t now_ms() { return static_cast<std::int64_t>(runtime::unix_milliseconds()); }
  static std::string reported_at(std::int64_t ms) {
    return nlohmann::json{{"pid", 7}, {"config", "nodes.yaml"}, {"reported_at_ms", ms}}.dump();
  }

  FakeCluster cluster_;
};

TEST_F(AutoscalerStatus, AnOldOneSaysHowOldItIs) {
  keep(reported_at(now_ms()));
  const Said fresh = status();
  EXPECT_EQ(fresh.code, 0) << fresh.err;
  expect_said(fresh.out, {"autoscaler pid 7, nodes.yaml"});
  EXPECT_EQ(fresh.out.find("does not run"), std::string::npos) << fresh.out;
  keep(reported_at(now_ms() - 3'600'000));
  expect_said(status().out, {"this is 36", " s old: the autoscaler does not run"});
  const auto json = nlohmann::json::parse(status(true).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["pid"], 7);
}

TEST_F(AutoscalerStatus, WithoutAnAutoscalerItSaysHowToGetOne) {
  keep(runtime::not_found(std::string("no value for ") + kStatusKey));
  const Said none = status();
  EXPECT_EQ(none.code, 1);
  expect_said(none.err, {"no autoscaler runs", "--autoscaler FILE"});
  keep(runtime::not_found("no such method"));
  expect_said(status().err, {"error: no such method"});
}

TEST_F(AutoscalerStatus, WhatAnotherHasWrittenThereIsAnError) {
  for (const char* text : {"", "{", "[]", R"({"pid": "seven"})", R"({"reported_at_ms": []})"}) {
    keep(std::string(text));
    const Said said = status();
    EXPECT_EQ(said.code, 1) << text;
    expect_said(said.err, {"the autoscaler's status is malformed"});
  }
}

/// The command runs in a child, of which it takes the signals.
class AutoscalerRun : public ::testing::Test {
 protected:
  static constexpr const char* kConfig =
      "max_nodes: 4\nnode_types: {w: {resources: {CPU: 1}, max_nodes: 1}}\n";

  AutoscalerRun() {
    options_.config = write("nodes.yaml", kConfig);
    options_.left = folder_.file("left");
  }
  std::string write(const char* name, const std::string& text) {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  /// The records in the cluster's store are these. What the test does once the autoscaler has asked
  /// for the demand.
  template <class Records>
  Said run(Records records, std::function<void(FakeCluster&)> once_it_works = {}) {
    return said_by([&] {
      return support::in_child([&] {
        FakeCluster cluster;
        cluster.on<control::KvGet>([&](const auto&) { return records; });
        cluster.on<control::KvPut>([](const auto&) { return runtime::ControlAnswer(); });
        options_.address = cluster.address();
        std::thread other([&] {
          if (!once_it_works) return;
          (void)cluster.node().next<control::QueryDemand>();
          once_it_works(cluster);
        });
        const int code = autoscaler_run_command(options_);
        other.join();
        return code;
      });
    });
  }
  std::string left() const { return support::content_of(options_.left); }

  const support::TemporaryFolder folder_;
  AutoscalerCommandOptions options_;
};

TEST_F(AutoscalerRun, EndsInOrderWhenItIsTold) {
  const Said said =
      run(runtime::not_found("none yet"), [](FakeCluster&) { ::kill(::getpid(), SIGTERM); });
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(left(), "") << "nothing is left";
}

TEST_F(AutoscalerRun, EndsWithItsNodeAndDoesNotSayThatNothingIsLeft) {
  const Said said =
      run(runtime::not_found("none yet"), [](FakeCluster& cluster) { cluster.node().close(); });
  EXPECT_EQ(said.code, 1) << said.err;
  expect_said(left(), {"has not said whether all of its machines are removed"});
}

TEST_F(AutoscalerRun, DoesNotBeginWithRecordsThatItCannotRead) {
  const Said said = run(std::string("{"));
  EXPECT_EQ(said.code, 1) << said.err;
  expect_said(left(), {"has not said whether"});
}

TEST_F(AutoscalerRun, DoesNotBeginWithAConfigurationThatItCannotRead) {
  options_.config = write("bad.yaml", "max_nodes: 4\nmax_node: 3\n");
  const Said said = run(runtime::not_found("none yet"));
  EXPECT_EQ(said.code, 1);
  expect_said(said.err, {"bad.yaml:2: unknown key 'max_node'"});
  EXPECT_FALSE(std::filesystem::exists(options_.left));
}

TEST_F(AutoscalerRun, ACheckSaysWhatTheFileAsksFor) {
  const Said good = said_by([&] { return autoscaler_check_command(options_.config); });
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, options_.config + ": 0 to 4 nodes, of 1 type\n");
  const std::string bad =
      write("bad.yaml", std::string(kConfig) + "provider: {type: command, command: [./none]}\n");
  const Said refused = said_by([&] { return autoscaler_check_command(bad); });
  EXPECT_EQ(refused.code, 1);
  expect_said(refused.err, {bad + ": provider.command: '"});
}

}  // namespace
}  // namespace placement
