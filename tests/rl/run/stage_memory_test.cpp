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
#include "tests/rl/run/no_stage.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

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
    const auto memory = longest ? stage_memory(setup, stage_)
                                : stage_memory(setup, stage_, RowLengths{.longest = 1});
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
  EXPECT_EQ(parts(setup({"engine.zero_level=1"})).count(kCheckpointShare), 0u)
      << "each worker writes its part as it is";
  EXPECT_EQ(parts(setup({"engine.zero_level=1", "trainer.save_freq=0"})).count(kCheckpointPart), 0u)
      << "nothing is ever saved";
  auto gradients = parts(setup({"engine.zero_level=2"}));
  EXPECT_EQ(gradients["weights"], 5952);
  EXPECT_EQ(gradients["sum of gradients"], 2976);
  EXPECT_EQ(gradients["gradients of a leaf"], 4 * (256 + 608 + 608))
      << "4 rows of 16 tokens: one pass";
  EXPECT_EQ(
      parts(setup({"engine.zero_level=2", "data.max_token_len_per_gpu=63"}))["gradients of a leaf"],
      5952);
  stage_.lengths.sequences_per_item = 2;
  EXPECT_EQ(parts(setup({"engine.zero_level=2"}, rm_keys()))["gradients of a leaf"], 5952)
      << "a row is a pair";
  stage_.lengths.sequences_per_item = 1;
  auto weights = parts(setup({"engine.zero_level=3"}));
  EXPECT_EQ(weights["weights"], 2976);
  EXPECT_EQ(weights["gathered units"], 4 * (608 + 608));
  EXPECT_EQ(weights.count(kCheckpointPart), 0u);
  EXPECT_EQ(parts(setup({"engine.zero_level=3", "engine.fsdp_size=2"}))["weights"], 2976);
  EXPECT_EQ(parts(setup({"engine.zero_level=3", "engine.fsdp_size=1"}))["weights"], 5952);
  std::optional<std::string> note;
  const runtime::Status odd = judge_stage_fit(
      setup({"engine.fsdp_size=3"}), stage_, [](const RoleMemory&) { return runtime::Status(); },
      note);
  EXPECT_EQ(odd.code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(odd.message().find("engine.fsdp_size: must be"), std::string::npos) << odd.message();
}

// Next to what is trained, of the same size.
TEST_F(StageMemoryTest, AReferenceMayBeKeptOnce) {
  stage_.frozen = {folder_.path()};
  const std::string key = "preference.reference_zero_level";
  const std::int64_t whole = parts(setup({}, dpo_keys()))["frozen model"];
  const std::int64_t units = 4 * (608 + 608);
  EXPECT_EQ(parts(setup({key + "=3"}, dpo_keys()))["frozen model"], whole - 5952 / 2 + units);
  EXPECT_EQ(parts(setup({key + "=3", "engine.fsdp_size=1"}, dpo_keys()))["frozen model"], whole);
  EXPECT_EQ(parts(setup({"engine.zero_level=3"}, dpo_keys()))["frozen model"], whole)
      << "levels are each model's own";
  StageSetup fits = setup({}, dpo_keys());
  const ZeroChoice none = settle(fits, std::int64_t{1} << 40);
  EXPECT_NE(none.text().find(key + "=auto is 0"), std::string::npos) << none.text();
  EXPECT_EQ(settle(fits, 0).text(), none.text()) << "a node that does not say what it has";
  StageSetup sft = setup();
  EXPECT_EQ(settle(sft, std::int64_t{1} << 40).text().find(key), std::string::npos)
      << "its teacher has no such key";
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
  stage_.lengths.longest = 63;
  note.reset();
  const Status refused = judge_stage_fit(given, stage_, fits, note);
  EXPECT_EQ(refused.code(), runtime::ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("rows of up to 63 tokens"), std::string::npos)
      << refused.to_string();
  EXPECT_FALSE(note);
}

// A pass has as many tokens as its rows together, of which few are as long as the longest.
TEST_F(StageMemoryTest, APassIsAsLargeAsItsLongestRowsTogether) {
  const auto activations = [&](const StageSetup& setup, const RowLengths& rows) {
    const auto memory = stage_memory(setup, stage_, rows);
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    for (const MemoryPart& part : memory.ok() ? memory->parts : std::vector<MemoryPart>()) {
      if (part.name == "activations") return part.bytes;
    }
    return std::int64_t{0};
  };
  const auto of = [&](const StageSetup& setup, std::int64_t tokens) {
    MemoryOptions options{.forward_tokens = tokens, .output_tokens = tokens, .positions = 12};
    options.workers = setup.workers;
    for (const MemoryPart& part : training_memory(small_config(), options)) {
      if (part.name == "activations") return part.bytes;
    }
    return std::int64_t{0};
  };
  const RowLengths one_long{
      .longest = 12, .items = {12, 3, 2, 1, 1, 1, 1, 1}, .rows = 8, .rows_seen = 8};
  const StageSetup by_tokens = setup();  // 4 rows a worker, 64 tokens a pass
  EXPECT_EQ(activations(by_tokens, one_long), of(by_tokens, 12 + 3 + 2 + 1));
  const StageSetup by_rows =
      setup({"data.use_dynamic_bsz=false", "data.micro_batch_size_per_gpu=2"});
  EXPECT_EQ(activations(by_rows, one_long), of(by_rows, 12 + 3));
  const StageSetup few_tokens = setup({"data.max_token_len_per_gpu=5"});
  EXPECT_EQ(activations(few_tokens, one_long), of(few_tokens, 12));
  const StageSetup in_leaves = setup({"trainer.gradient_leaves=4"});  // of 2 rows
  EXPECT_EQ(activations(in_leaves, one_long), of(in_leaves, 12 + 3));
  RowLengths unseen = one_long;  // others may be as long
  unseen.items = {12, 3};
  unseen.rows_seen = 2;
  EXPECT_EQ(activations(by_tokens, unseen), of(by_tokens, 12 + 3 + 12 + 12));
}

TEST_F(StageMemoryTest, APairIsTwoSequences) {
  const StageSetup setup =
      this->setup({"data.use_dynamic_bsz=false", "data.micro_batch_size_per_gpu=2"}, dpo_keys());
  const auto total = [&](const RowLengths& rows) {
    const auto memory = stage_memory(setup, stage_, rows);
    EXPECT_TRUE(memory.ok()) << memory.status().to_string();
    return memory.ok() ? memory->total() : 0;
  };
  EXPECT_EQ(total({.longest = 8, .sequences_per_item = 2}),
            total({.longest = 8, .items = {16, 16}}));
}

TEST(UnseenRows, AreReported) {
  EXPECT_FALSE(unseen_rows_note({.rows = 7, .rows_seen = 7}));
  const auto note = unseen_rows_note({.rows = 10500, .rows_seen = 10000});
  ASSERT_TRUE(note);
  EXPECT_NE(note->find("first 10000 of 10500 rows"), std::string::npos) << *note;
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
