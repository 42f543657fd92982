// Runs on nodes that differ in memory: where a run goes, what a second one finds, what is refused.
// Nodes with a declared memory stand for machines.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

constexpr std::int64_t kSmall = 200'000'000, kLarge = 1'000'000'000;

class UnequalNodesTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(folder_);
    // The small node is the first, which a run without a demand would come to.
    const Outcome head = start_node("--head --port 0", kSmall);
    ASSERT_EQ(head.code, 0) << head.output;
    address_ = head.output.substr(0, head.output.find('\n'));
    const Outcome second = start_node("--address " + address_, kLarge, 4);
    ASSERT_EQ(second.code, 0) << second.output;
    for (const auto& node : list("nodes"))
      if (node["resources"]["memory"] == kLarge) large_ = node["id"];
  }
  void TearDown() override {
    for (const pid_t run : runs_) {
      ::kill(run, SIGKILL);
      ::waitpid(run, nullptr, 0);
    }
    EXPECT_EQ(cluster("stop --force").code, 0);
    TrainerTest::TearDown();
  }

  static Outcome start_node(const std::string& how, std::int64_t memory, int cpus = 2) {
    return shell(STARLING_BIN_DIR "/starling start " + how + " --num-cpus " + std::to_string(cpus) +
                 " --resources \"{\\\"memory\\\": " + std::to_string(memory) + "}\" | tail -n 1");
  }
  Outcome cluster(const std::string& command) const {
    return shell(STARLING_BIN_DIR "/starling " + command + " --address " + address_);
  }
  nlohmann::json list(const std::string& what) const {
    const Outcome listed = cluster("list " + what + " --json");
    EXPECT_EQ(listed.code, 0) << listed.output;
    return nlohmann::json::parse(listed.output, nullptr, false);
  }
  // Of groups that are placed: the node and the bytes of their bundle.
  std::vector<std::pair<std::string, std::int64_t>> reserved() const {
    std::vector<std::pair<std::string, std::int64_t>> found;
    for (const auto& group : list("placement-groups")) {
      if (group["state"] != "placed") continue;
      EXPECT_EQ(group["bundles"].size(), 1u);
      const auto& bundle = group["bundles"][0];
      found.emplace_back(bundle["node"], bundle["resources"].value("memory", std::int64_t{0}));
    }
    return found;
  }
  std::string options(const std::string& name) const {
    return "--address " + address_ +
           " trainer.total_training_steps=100000 trainer.default_local_dir=" +
           (folder_ / name).string() + " ";
  }
  void begin(const std::string& name, const std::string& keys) {
    runs_.push_back(start(train_command(options(name) + keys)));
    ASSERT_TRUE(wait_for_step(runs_.back(), folder_ / name, 1)) << read(folder_ / "output");
  }

  std::string address_, large_;
  std::vector<pid_t> runs_;
};

TEST_F(UnequalNodesTest, ARunGoesToTheNodeThatHoldsItAndASecondSharesIt) {
  model();
  ASSERT_NO_FATAL_FAILURE(begin("first", "trainer.cpus_per_worker=1"));
  const auto first = reserved();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].first, large_);
  EXPECT_GT(first[0].second, kSmall) << "the process of the policy and that of the reward";
  EXPECT_LT(first[0].second, kLarge / 2);

  // Two share a node that holds both.
  ASSERT_NO_FATAL_FAILURE(begin("second", "trainer.cpus_per_worker=1"));
  const auto both = reserved();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].first, large_);
  EXPECT_EQ(both[1].first, large_);
}

TEST_F(UnequalNodesTest, WhatAnotherRunHasReservedIsWaitedFor) {
  model();
  ASSERT_NO_FATAL_FAILURE(begin("first",
                                "trainer.n_gpus_per_node=2 trainer.cpus_per_worker=1 "
                                "actor_rollout_ref.actor.use_kl_loss=true"));
  ASSERT_EQ(reserved().size(), 1u);
  EXPECT_GT(reserved()[0].second, kLarge - kSmall);
  // The small node has CPUs for the second, and the large one memory that the first has reserved.
  runs_.push_back(start(train_command(options("second") + "trainer.cpus_per_worker=1")));
  std::string reason;
  const auto waits = [&] {
    for (const auto& group : list("placement-groups")) {
      if (group["state"] == "pending") reason = group["pending_reason"];
    }
    return !reason.empty();
  };
  ASSERT_TRUE(comes_while_it_runs(runs_[1], waits, std::chrono::milliseconds(200)))
      << read(folder_ / "output");
  for (const char* part : {"memory ", "which no node has free"})
    EXPECT_NE(reason.find(part), std::string::npos) << part << " in: " << reason;
  EXPECT_EQ(reserved().size(), 1u);
  ::kill(runs_[0], SIGKILL);  // which gives it back
  ASSERT_TRUE(wait_for_step(runs_[1], folder_ / "second", 1)) << read(folder_ / "output");
  ASSERT_EQ(reserved().size(), 1u);
  EXPECT_EQ(reserved()[0].first, large_);
}

TEST_F(UnequalNodesTest, CpusAndMemoryOfDifferentNodesAreRefusedAtOnce) {
  const Outcome third = start_node("--address " + address_, kSmall, 8);
  ASSERT_EQ(third.code, 0) << third.output;
  for (const std::string how : {"", "--dry-run "}) {
    const Outcome refused = train(how + options("run") + "trainer.cpus_per_worker=6");
    EXPECT_EQ(refused.code, 1);
    for (const char* part : {"trainer.cpus_per_worker=6", "no node has both", "8 CPUs with 200 MB",
                             "4 CPUs with 1.0 GB", "trainer.cpus_per_worker to at most 4"})
      EXPECT_NE(refused.output.find(part), std::string::npos) << part << " in: " << refused.output;
  }
  EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
}

}  // namespace
}  // namespace rl
