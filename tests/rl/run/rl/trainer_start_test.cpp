// A trainer's start on a cluster whose only node is a fake: what it asks of the cluster, and its
// failures.
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "rl/run/rl/rl_plan.h"
#include "rl/trainer.h"
#include "runtime/runtime.h"
#include "tests/rl/run/rl/toy_run.h"
#include "tests/runtime/control/fake_node.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

namespace fs = std::filesystem;
using runtime::ErrorCode;
using runtime::Status;
using support::expect_failure;

// A program's runtime, and its node, which has no room for placement groups.
class TrainerStartTest : public ToyRunTest {
 protected:
  // Expects that it fails before anything is written into the run's folder.
  Status start(runtime::Runtime& runtime) const {
    const auto started = Trainer::create(runtime, config());
    EXPECT_FALSE(started.ok());
    EXPECT_FALSE(fs::exists(run() / "config.yaml")) << "it is written too early";
    EXPECT_FALSE(fs::exists(run() / "metrics.jsonl")) << "it is written too early";
    return started.status();
  }
  void SetUp() override {
    runtime::RuntimeOptions options;
    options.address = node_.endpoint().to_string();
    options.start_cluster = false;
    options.forward_output = false;
    runtime_ = std::make_unique<runtime::Runtime>(1, arguments_, options);
    const Status started = runtime_->start();
    ASSERT_TRUE(started.ok()) << started.to_string();
  }
  void TearDown() override { runtime_.reset(); }

  // What the node says that it has.
  void set_memory(double bytes) {
    const std::lock_guard lock(mutex_);
    memory_bytes_ = bytes;
  }
  // The placement groups that it was asked for.
  std::vector<runtime::GroupSpec> groups() {
    const std::lock_guard lock(mutex_);
    return groups_;
  }

  char name_[5] = "test";
  char* arguments_[2] = {name_, nullptr};

 private:
  runtime::Result<runtime::ControlAnswer> answer_to(const runtime::ControlRequest::Body& body) {
    namespace control = runtime::control;
    using runtime::ControlAnswer;
    const std::lock_guard lock(mutex_);
    runtime::NodeInfo node;
    node.node = node_.id;
    node.hostname = "fake";
    node.resources = node.available = {{"CPU", 8}, {"memory", memory_bytes_}};
    if (std::holds_alternative<control::RegisterDriver>(body))
      return ControlAnswer(runtime::JobId::random());
    if (std::holds_alternative<control::WatchNodes>(body))
      return ControlAnswer(control::NodeList{.version = 1, .nodes = {node}});
    if (std::holds_alternative<control::QueryCluster>(body)) {
      runtime::ClusterState state;
      state.nodes = {node};
      return ControlAnswer(state);
    }
    if (const auto* group = std::get_if<control::CreateGroup>(&body)) {
      groups_.push_back(group->spec);
      return runtime::resource_exhausted("others have taken it");
    }
    return ControlAnswer();
  }

  const support::ScopedVariable sessions_{"STARLING_SESSION_ROOT", folder_.path().c_str()};
  const support::ScopedVariable token_{"STARLING_TOKEN", runtime::FakeNode::kToken};
  std::mutex mutex_;  // guards what follows
  double memory_bytes_ = 0;
  std::vector<runtime::GroupSpec> groups_;
  runtime::FakeNode node_{
      [this](const runtime::ControlRequest::Body& body, runtime::ControlAnswerer& answer) {
        answer(answer_to(body));
        return true;
      }};

 protected:
  std::unique_ptr<runtime::Runtime> runtime_;
};

TEST_F(TrainerStartTest, WhatWouldFillTheNodesIsRefusedBeforeAnythingIsReserved) {
  set_memory(1000);
  expect_failure(start(*runtime_), ErrorCode::kResourceExhausted, {"do not fit the nodes' memory"});
  EXPECT_TRUE(groups().empty());
}

TEST_F(TrainerStartTest, WorkersAreReservedWithTheMemoryThatTheyTake) {
  set_memory(1e12);
  expect_failure(start(*runtime_), ErrorCode::kResourceExhausted,
                 {"reserving slots for the workers", "others have taken it"});
  ASSERT_EQ(groups().size(), 1u);
  ASSERT_FALSE(groups()[0].bundles.empty());
  const runtime::ResourceMap slot = groups()[0].bundles[0];
  ASSERT_TRUE(slot.contains("memory"));
  EXPECT_GT(slot.at("memory"), 0);
  EXPECT_LT(slot.at("memory"), 1e12);
  EXPECT_TRUE(RlPlan::make(config()).ok()) << "its folder is free for the next";
}

TEST_F(TrainerStartTest, WithoutAClusterNothingOfItIsThere) {
  runtime_.reset();  // a process has one at a time
  runtime::Runtime not_started(1, arguments_);
  expect_failure(start(not_started), ErrorCode::kUnavailable, {"start"});
  EXPECT_TRUE(RlPlan::make(config()).ok()) << "its folder is free for the next";
}

}  // namespace
}  // namespace rl
