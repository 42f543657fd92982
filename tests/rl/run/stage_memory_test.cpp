// Sizes of a stage's workers, and their level of ZeRO; those of one process are
// tests/rl/plan/memory_plan_test.cpp's.
#include "rl/run/stage_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"
#include "rl/run/memory_fit.h"
#include "tests/rl/plan/small_config.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

// A stage that is never started.
class NoStage final : public DataStage {
 public:
  Status open(const StageSetup&) override { return {}; }
  std::int64_t batches_per_epoch() const override { return 1; }
  Result<std::string> first_row() const override { return std::string(); }
  std::int64_t longest_row() const override { return longest; }
  Status start(runtime::Runtime&, const StageSetup&, const WorkerSlots&) override { return {}; }
  std::vector<ProfiledGroup> profiled_groups() const override { return {}; }
  Status draw() override { return {}; }
  Result<Metrics> step(double) override { return Metrics(); }
  std::int64_t epoch() const override { return 0; }
  bool validates() const override { return false; }
  Result<Metrics> validate() override { return Metrics(); }
  nlohmann::json position() const override { return {}; }
  Status resume(const nlohmann::json&) override { return {}; }
  Result<WriteState> state(bool) const override { return runtime::unimplemented("no state"); }
  Status load(const std::filesystem::path&) override { return {}; }

  std::int64_t longest = 1;
};

// 8 rows of at most 16 tokens on 2 workers, of a model of 5952 bytes.
class StageMemoryTest : public ::testing::Test {
 protected:
  StageMemoryTest() {
    std::ofstream(folder_.path() / "config.json") << small_config().to_json().dump();
  }

  StageSetup setup(std::vector<std::string> overrides = {}, const KeyTable& keys = sft_keys()) {
    for (const char* given : {"data.train_batch_size=8", "data.max_length=16",
                              "data.max_token_len_per_gpu=64", "trainer.async_save=false"})
      overrides.insert(overrides.begin(), given);
    auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = &keys});
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    auto options = StageOptions::from_config(*config);
    EXPECT_TRUE(options.ok()) << options.status().to_string();
    return {.config = std::move(*config),
            .options = std::move(*options),
            .model = folder_.path(),
            .workers = 2};
  }
  std::map<std::string, std::int64_t> parts(const StageSetup& setup) const {
    const auto memory = stage_memory(setup, stage_);
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    std::map<std::string, std::int64_t> map;
    for (const MemoryPart& part : memory.ok() ? memory->parts : std::vector<MemoryPart>())
      map[part.name] += part.bytes;
    return map;
  }
  // What a node must have for both workers, with rows as long as may be or of one token.
  std::int64_t need(const StageSetup& setup, bool longest = true) const {
    const auto memory = longest ? stage_memory(setup, stage_) : stage_memory(setup, stage_, 1);
    if (!memory.ok()) return 0;
    const SlotMemory node = slot_memory(std::span(&*memory, 1), slots_);
    return node.node_bytes + node.leader_bytes;
  }
  ZeroChoice settle(StageSetup& setup, std::int64_t node_bytes) const {
    return settle_stage_zero(setup, stage_, slots_, [&](const RoleMemory& role) {
      const NodeRoom node{"node a", static_cast<double>(node_bytes), 2};
      return check_memory_fits(std::span(&role, 1), slots_, std::span(&node, 1));
    });
  }

  support::TemporaryFolder folder_;
  NoStage stage_;
  SlotOptions slots_{.nodes = 1, .per_node = 2};
};

TEST_F(StageMemoryTest, CountsWhatWorkersKeepOnce) {
  auto whole = parts(setup());
  EXPECT_EQ(whole["gradients"], 5952);
  EXPECT_EQ(whole.count(kCheckpointPart), 0u);
  EXPECT_EQ(parts(setup({"trainer.gradient_leaves=4"}))["sum of leaves"], 2976);
  EXPECT_EQ(parts(setup({"engine.zero_level=1"}))[kCheckpointPart], 2 * 5952)
      << "moments are collected";
  EXPECT_EQ(parts(setup({"engine.zero_level=1", "trainer.save_freq=0"})).count(kCheckpointPart), 0u)
      << "nothing is ever saved";
  auto gradients = parts(setup({"engine.zero_level=2"}));
  EXPECT_EQ(gradients["weights"], 5952);
  EXPECT_EQ(gradients["sum of gradients"], 2976);
  EXPECT_EQ(gradients["gradients of a leaf"], 4 * (256 + 608)) << "4 rows of 16 tokens: one pass";
  EXPECT_EQ(
      parts(setup({"engine.zero_level=2", "data.max_token_len_per_gpu=63"}))["gradients of a leaf"],
      5952);
  EXPECT_EQ(parts(setup({"engine.zero_level=2"}, rm_keys()))["gradients of a leaf"], 5952)
      << "a row may be a pair";
  auto weights = parts(setup({"engine.zero_level=3"}));
  EXPECT_EQ(weights["weights"], 2976);
  EXPECT_EQ(weights["gathered units"], 4 * (608 + 608));
  EXPECT_EQ(weights[kCheckpointPart], 3 * 5952);
}

TEST_F(StageMemoryTest, AutoIsTheLowestLevelThatFits) {
  StageSetup whole = setup(), moments = setup({"engine.zero_level=1"});
  whole.options.async_save = moments.options.async_save = true;  // the same copy with both
  whole.options.save.steps = moments.options.save.steps = 1;
  ASSERT_LT(need(moments), need(whole));
  StageSetup fits = whole;
  EXPECT_FALSE(settle(fits, need(whole)).shards());
  EXPECT_EQ(fits.config.serialize(), whole.config.serialize());
  StageSetup tight = whole;
  const ZeroChoice zero = settle(tight, need(moments));
  EXPECT_TRUE(zero.text().starts_with("engine.zero_level=auto is 1: ")) << zero.text();
  EXPECT_EQ(tight.options.learner.zero, ZeroLevel::kMoments);
  EXPECT_EQ(StageOptions::from_config(tight.config)->learner.zero, ZeroLevel::kMoments);
}

TEST_F(StageMemoryTest, WhatTheDatasRowsTakeIsRefusedWhereItDoesNotFit) {
  const StageSetup given = setup({"data.max_length=64", "data.max_token_len_per_gpu=1000000"});
  const std::int64_t room = need(given, /*longest=*/false);
  const FitsNodes fits = [&](const RoleMemory& role) {
    const NodeRoom node{"node a", static_cast<double>(room), 2};
    return check_memory_fits(std::span(&role, 1), slots_, std::span(&node, 1));
  };
  std::optional<std::string> note;
  EXPECT_TRUE(judge_stage_fit(given, stage_, fits, note).ok());
  ASSERT_TRUE(note) << "rows of 64 tokens would not fit, the data's of 1 do";
  EXPECT_NE(note->find("rows of data.max_length (64)"), std::string::npos) << *note;
  stage_.longest = 63;
  note.reset();
  const Status refused = judge_stage_fit(given, stage_, fits, note);
  EXPECT_EQ(refused.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("rows of up to 63 tokens"), std::string::npos)
      << refused.to_string();
  EXPECT_FALSE(note);
}

TEST_F(StageMemoryTest, WhatMayFitWithShortRowsStaysAtTheLevelThatThenFits) {
  const StageSetup whole = setup({"data.max_length=64", "data.max_token_len_per_gpu=1000000"});
  ASSERT_LT(need(whole, /*longest=*/false), need(whole));
  StageSetup short_rows = whole;
  EXPECT_FALSE(settle(short_rows, need(whole, /*longest=*/false)).shards());
  StageSetup nothing = whole;
  EXPECT_EQ(settle(nothing, 1000).text(), "");
  EXPECT_EQ(nothing.options.learner.zero, ZeroLevel::kNone);
}

}  // namespace
}  // namespace rl
