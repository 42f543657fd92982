#include "rl/config/check.h"

#include <gtest/gtest.h>

#include "rl/config/descriptions.h"
#include "rl/config/keys.h"

namespace rl {
namespace {

using Verdict = Judgement::Verdict;

ConfigCheck check(std::vector<std::string> overrides) {
  return *check_config({std::nullopt, std::move(overrides)});
}

KeyCheck only(const std::string& override_text) {
  const ConfigCheck result = check({override_text});
  EXPECT_EQ(result.keys.size(), 1u) << override_text;
  return result.keys.empty() ? KeyCheck() : result.keys.front();
}

TEST(Check, SaysWhatEachKeyMeansHere) {
  const KeyCheck used = only("data.train_batch_size=64");
  EXPECT_EQ(used.verdict, Verdict::kUsed);
  EXPECT_EQ(used.value, 64);
  EXPECT_EQ(used.meaning, "prompts a step");
  EXPECT_EQ(used.origin, "the command line");

  const KeyCheck nothing = only("actor_rollout_ref.rollout.gpu_memory_utilization=0.4");
  EXPECT_EQ(nothing.verdict, Verdict::kNoEffect);
  EXPECT_EQ(nothing.meaning, "an option of another inference engine");

  const KeyCheck refused = only("trainer.deterministic=false");
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_EQ(refused.meaning, "trainer.deterministic: false is refused: runs are always repeatable");
}

TEST(Check, GoesOnBehindWhatIsWrong) {
  const ConfigCheck result = check({"data.max_prompt_lenth=1", "no_value", "data.shuffle=maybe", "trainer.nnodes=2"});
  EXPECT_EQ(result.count(Verdict::kInvalid), 3u);
  EXPECT_EQ(result.count(Verdict::kUsed), 1u);
  EXPECT_FALSE(result.passes());
  EXPECT_NE(to_text(result).find("did you mean 'data.max_prompt_length'?"), std::string::npos);
}

TEST(Check, AReferenceToNothingIsWrongAndHidesNoOtherKey) {
  const ConfigCheck result = check({"data.max_prompt_length=${data.nothing}", "trainer.nnodes=2"});
  EXPECT_FALSE(result.passes());
  EXPECT_GE(result.keys.size(), 2u);
  EXPECT_EQ(only("data.max_prompt_length=${data.max_response_length}").value, 512);
}

TEST(Check, NullStandsForTheDefault) {
  for (const KeyInfo& row : known_keys()) {
    const ConfigCheck result = check({"++" + std::string(row.key) + "=null"});
    EXPECT_TRUE(result.passes()) << row.key << ": " << to_text(result);
  }
  EXPECT_EQ(only("data.train_batch_size=null").value, 1024);
  EXPECT_EQ(only("actor_rollout_ref.actor.clip_ratio_low=null").value, 0.2);  // by its reference
}

TEST(Check, DefaultsPass) {
  for (const KeyInfo& row : known_keys()) {
    if (!row.has_default() || row.kind == KeyKind::kMap || row.default_text == "{}") continue;
    const ConfigCheck result = check({std::string(row.key) + "=" + std::string(row.default_text)});
    EXPECT_TRUE(result.passes()) << to_text(result);
  }
}

TEST(Check, KeepsTheNameThatTheUserWrote) {
  const KeyCheck key = only("trainer.max_steps=7");
  EXPECT_EQ(key.written, "trainer.max_steps");
  EXPECT_EQ(key.key, "trainer.total_training_steps");
  EXPECT_NE(to_text(check({"trainer.max_steps=7"})).find("trainer.max_steps = 7  (trainer.total_training_steps): "), std::string::npos);
}

TEST(Check, KeysAddedOnPurposeHaveNoEffect) {
  EXPECT_EQ(only("+mine.x=1").verdict, Verdict::kNoEffect);
  EXPECT_EQ(only("mine.x=1").verdict, Verdict::kInvalid);
}

TEST(Check, WhatHydraReadsIsNoKey) {
  EXPECT_TRUE(check({"hydra.run.dir=out", "hydra/job_logging=none"}).keys.empty());
}

TEST(Check, TheJsonHasVerdictAndMeaningOfEachKey) {
  const auto json = to_json(check({"trainer.nnodes=2", "trainer.deterministic=false"}));
  EXPECT_EQ(json["passes"], false);
  EXPECT_EQ(json["used"], 1);
  EXPECT_EQ(json["refused"], 1);
  ASSERT_EQ(json["keys"].size(), 2u);
  EXPECT_EQ(json["keys"][0]["key"], "trainer.deterministic");
  EXPECT_EQ(json["keys"][0]["verdict"], "refused");
  EXPECT_EQ(json["keys"][1]["verdict"], "used");
}

TEST(Check, EveryKeyThatIsUsedIsDescribed) {
  for (const KeyInfo& row : known_keys()) {
    if (row.support == KeySupport::kSupported) EXPECT_FALSE(description_of(row.key).empty()) << row.key << ": add a line to rl/config/descriptions.inc";
  }
}

}  // namespace
}  // namespace rl
