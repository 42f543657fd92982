// ActorOptions for an actor's place and surroundings, from spawn() to the process it runs in.
#include <cmath>

#include "cluster_fixture.h"

namespace runtime::test {
namespace {

class OptionsTest : public ClusterTest {
 protected:
  void SetUp() override {
    start({"--num-cpus", "4", "--num-gpus", "1", "--resources", R"({"tape": 2})", "--label",
           "zone=a"});
  }

  std::string variable(const ActorOptions& options, const std::string& name) {
    auto made = rt_->spawn<Counter>(options, 0);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    if (!made.ok()) return "?";
    std::string value = get(made->call(&Counter::variable, name));
    EXPECT_TRUE(rt_->kill(*made).ok());
    return value;
  }
};

TEST_F(OptionsTest, ResourcesAreReservedForTheActorsLife) {
  for (ActorOptions options : {ActorOptions{.resources = {{"tape", 2}}}, ActorOptions{.gpus = 1},
                               ActorOptions{.cpus = 3.5}}) {
    auto first = rt_->spawn<Counter>(options, 0);
    ASSERT_TRUE(first.ok()) << first.status().to_string();
    const std::string name = !options.resources.empty() ? "tape" : options.gpus > 0 ? "GPU" : "CPU";
    options.create_timeout = 300ms;
    expect_failure(rt_->spawn<Counter>(options, 0).status(), ErrorCode::kResourceExhausted, {name});
    ASSERT_TRUE(rt_->kill(*first).ok());
    options.create_timeout = 20s;
    auto second = rt_->spawn<Counter>(options, 0);
    EXPECT_TRUE(second.ok()) << second.status().to_string();
    EXPECT_TRUE(rt_->kill(*second).ok());
  }
}

TEST_F(OptionsTest, WhatCannotBeMeantIsRefusedByName) {
  const auto refused = [&](const ActorOptions& options, const std::string& name) {
    expect_failure(rt_->spawn<Counter>(options, 0).status(), ErrorCode::kInvalidArgument,
                   {"Counter", name});
  };
  refused({.name = std::string(2000, 'x')}, "name has 2000 bytes");
  refused({.max_restarts = -2}, "max_restarts is -2");
  refused({.max_task_retries = -7}, "max_task_retries is -7");
  refused({.cpus = std::nan("")}, "CPU) is nan");
  refused({.gpus = -1}, "GPU) is -1");
  refused({.resources = {{"tape", -2}}}, "resource \"tape\" is -2");
  refused({.cpu_affinity = {0, 1000}}, "there is no core 1000");
  refused({.env = {{"A=B", "1"}}}, "\"A=B\" cannot be the name");
  refused({.env = {{"", "1"}}}, "env");
  refused({.log_prefix = "a\nb"}, "log_prefix has a control character");
  refused({.create_timeout = -1ms}, "create_timeout is -1 ms");
  refused({.call_timeout = -1ms}, "call_timeout is -1 ms");
}

TEST_F(OptionsTest, AMissingLabelIsNamed) {
  expect_failure(
      rt_->spawn<Counter>({.labels = {{"zone", "a"}, {"kind", "fast"}}, .create_timeout = 300ms}, 0)
          .status(),
      ErrorCode::kResourceExhausted,
      {"needs a node with kind=fast, zone=a", "lacks the labels kind=fast"});
}

TEST_F(OptionsTest, LabelsAndNodesChooseThePlace) {
  Command other({STARLING_BIN_DIR "/starling", "start", "--address", address(), "--num-cpus", "4",
                 "--label", "zone=b", "--block"});
  ASSERT_TRUE(eventually([&] { return rt_->cluster().state()->nodes.size() == 2; }))
      << other.output();
  NodeId there;
  const auto state = rt_->cluster().state();
  ASSERT_TRUE(state.ok());
  for (const NodeInfo& node : state->nodes) {
    if (node.node != rt_->cluster().node_id()) there = node.node;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(counter(0, {.labels = {{"zone", "a"}}}).node(), rt_->cluster().node_id());
    EXPECT_EQ(counter(0, {.labels = {{"zone", "b"}}}).node(), there);
    EXPECT_EQ(counter(0, {.node = there}).node(), there);
  }
  expect_failure(
      rt_->spawn<Counter>({.labels = {{"zone", "c"}}, .create_timeout = 300ms}, 0).status(),
      ErrorCode::kResourceExhausted, {"labels"});
}

TEST_F(OptionsTest, AnActorStandsInItsBundle) {
  GroupSpec spec;
  spec.bundles = {{{"CPU", 1}}, {{"CPU", 1}, {"tape", 2}}};
  auto group = rt_->groups().create(spec).get();
  ASSERT_TRUE(group.ok()) << group.status().to_string();
  const ActorOptions taker{.resources = {{"tape", 1}}, .create_timeout = 300ms};
  expect_failure(rt_->spawn<Counter>(taker, 0).status(), ErrorCode::kResourceExhausted, {"tape"});
  ActorOptions inside = taker;
  inside.create_timeout = 20s;
  inside.bundle = BundleSlot{group->spec.group, 1};
  auto actor = rt_->spawn<Counter>(inside, 0);
  EXPECT_TRUE(actor.ok()) << actor.status().to_string();
  inside.bundle->index = 0;
  EXPECT_FALSE(rt_->spawn<Counter>(inside, 0).ok()) << "that bundle has no tape";
}

TEST_F(OptionsTest, ThreadsAndEnvironmentReachTheProcess) {
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    EXPECT_EQ(variable({}, name), "1");
    EXPECT_EQ(variable({.cpus = 3}, name), "3");
    EXPECT_EQ(variable({.cpus = 1, .threads = 2}, name), "2");
  }
  EXPECT_EQ(variable({.env = {{"COLOUR", "green"}}}, "COLOUR"), "green");
  EXPECT_EQ(variable({}, "COLOUR"), "") << "of that actor alone";
  EXPECT_EQ(variable({.env = {{"OMP_NUM_THREADS", "7"}}}, "OMP_NUM_THREADS"), "7")
      << "what is said is said";
}

TEST_F(OptionsTest, TheCallTimeoutIsTheHandles) {
  auto actor = counter(0, {.call_timeout = 200ms});
  expect_failure(rt_->get(actor.call(&Counter::sleep_ms, 5000)).status(),
                 ErrorCode::kDeadlineExceeded, {"sleep_ms", "200 ms"});
  EXPECT_TRUE(rt_->kill(actor).ok());
}

TEST_F(OptionsTest, AConstructorHasItsTime) {
  expect_failure(rt_->spawn<Sleeper>({.create_timeout = 400ms}, 30'000).status(),
                 ErrorCode::kDeadlineExceeded, {"Sleeper"});
}

}  // namespace
}  // namespace runtime::test
