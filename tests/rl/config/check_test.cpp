#include "rl/config/check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "rl/config/config.h"
#include "rl/config/keys.h"
#include "rl/config/number_range.h"
#include "rl/config/stage_keys.h"

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

  const KeyCheck nothing = only("actor_rollout_ref.rollout.enforce_eager=true");
  EXPECT_EQ(nothing.verdict, Verdict::kNoEffect);
  EXPECT_EQ(nothing.meaning, "an option of another inference engine");

  const KeyCheck refused = only("trainer.deterministic=false");
  EXPECT_EQ(refused.verdict, Verdict::kRefused);
  EXPECT_EQ(refused.meaning, "trainer.deterministic: false is refused: runs are always repeatable");
}

TEST(Check, GoesOnBehindWhatIsWrong) {
  const ConfigCheck result =
      check({"data.max_prompt_lenth=1", "no_value", "data.shuffle=maybe", "trainer.nnodes=2"});
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

// Both at once: what is loaded and what is only checked.
bool takes(const KeyInfo& row, const KeyTable& keys, double number) {
  const bool whole = row.kind != KeyKind::kFloat && row.kind != KeyKind::kFloatOrNull &&
                     row.kind != KeyKind::kFloats;
  const std::string text =
      whole ? std::to_string(static_cast<std::int64_t>(number)) : nlohmann::json(number).dump();
  const std::string change = "++" + std::string(row.key) + "=" +
                             (row.kind == KeyKind::kFloats ? "[" + text + "," + text + "]" : text);
  const ConfigCheck checked =
      *check_config({.file = std::nullopt, .overrides = {change}, .keys = &keys});
  const auto loaded = Config::load({.file = std::nullopt, .overrides = {change}, .keys = &keys});
  EXPECT_EQ(checked.passes(), loaded.ok()) << change << ": " << loaded.status().message();
  if (!loaded.ok()) {
    EXPECT_NE(loaded.status().message().find(std::string(row.key) + ": must be "),
              std::string::npos)
        << loaded.status().message();
    EXPECT_NE(loaded.status().message().find("(from the command line)"), std::string::npos)
        << loaded.status().message();
  }
  return loaded.ok();
}

TEST(Check, EveryRangeEndsWhereItSays) {
  std::size_t ranges = 0;
  for (const KeyTable* keys : {&train_keys(), &sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    for (const KeyInfo& row : keys->rows()) {
      const auto range = NumberRange::parse(row.allowed);
      if (!range) continue;
      ++ranges;
      const double step = row.kind == KeyKind::kFloat || row.kind == KeyKind::kFloatOrNull ||
                                  row.kind == KeyKind::kFloats
                              ? 1e-5
                              : 1;
      if (std::isfinite(range->low)) {
        EXPECT_EQ(takes(row, *keys, range->low), !range->low_open) << row.key;
        EXPECT_TRUE(takes(row, *keys, range->low + step)) << row.key;
        EXPECT_FALSE(takes(row, *keys, range->low - step)) << row.key;
      }
      if (std::isfinite(range->high)) {
        EXPECT_EQ(takes(row, *keys, range->high), !range->high_open) << row.key;
        EXPECT_FALSE(takes(row, *keys, range->high + step)) << row.key;
      }
    }
  }
  EXPECT_GT(ranges, 100u);
  EXPECT_EQ(only("actor_rollout_ref.rollout.top_p=5").meaning,
            "actor_rollout_ref.rollout.top_p: must be in (0, 1], got 5");
  EXPECT_EQ(only("reward.num_workers=0").meaning,
            "reward.num_workers: must be from 1 to 1024, got 0");
  EXPECT_EQ(only("actor_rollout_ref.actor.optim.betas=[0.9,1.5]").meaning,
            "actor_rollout_ref.actor.optim.betas: must be in [0, 1), got [0.9,1.5]");
}

TEST(Check, NullStandsForTheDefault) {
  for (const KeyInfo& row : known_keys()) {
    std::string key(row.key);
    if (const std::size_t any = key.find('*'); any != std::string::npos)
      key.replace(any, 1, "name");
    const ConfigCheck result = check({"++" + key + "=null"});
    EXPECT_TRUE(result.passes()) << row.key << ": " << to_text(result);
  }
  EXPECT_EQ(only("data.train_batch_size=null").value, 1024);
  EXPECT_EQ(only("actor_rollout_ref.actor.clip_ratio_low=null").value, 0.2);  // by its reference
}

// `trainer.nnodes=$NODES` on a machine that is not of the cluster.
TEST(Check, WhatAnUnsetVariableLeavesOpenIsNotedAndRefusedByARun) {
  const ConfigCheck result = check({"trainer.nnodes=", "trainer.save_freq=''"});
  EXPECT_TRUE(result.passes()) << to_text(result);
  ASSERT_EQ(result.notes.size(), 3u) << to_text(result);  // the last one: which estimator
  EXPECT_NE(to_text(result).find("note: trainer.nnodes= has no value: where the script runs, the "
                                 "variable that it is taken from has to be set, to an integer\n"),
            std::string::npos)
      << to_text(result);
  const auto run = Config::load({{}, {"trainer.nnodes="}});
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find("trainer.nnodes: expected an integer, got nothing after "
                                        "'=': a variable of the script may not be set"),
            std::string::npos)
      << run.status().message();
  // Where a text is wanted, and in a file, nothing is left open.
  EXPECT_FALSE(check({"data.truncation="}).passes());
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("starling_empty_" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "trainer.nnodes: ''\n";
  const auto written = check_config({.file = file});
  std::filesystem::remove(file);
  ASSERT_TRUE(written.ok());
  EXPECT_FALSE(written->passes());
}

TEST(Check, TextsAreUtf8) {
  EXPECT_EQ(
      only("data.system_prompt=a\xff").meaning,
      "override 'data.system_prompt=a\xff': 'data.system_prompt': the value is not UTF-8 text");
  EXPECT_EQ(only("+reward.rule_kwargs={a:\xff}").verdict, Verdict::kInvalid);
  EXPECT_TRUE(check({"data.system_prompt=\u00e4"}).passes());
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
  EXPECT_NE(to_text(check({"trainer.max_steps=7"}))
                .find("trainer.max_steps = 7  (trainer.total_training_steps): "),
            std::string::npos);
}

/// A name as scripts write it, and what it means.
struct NameCase {
  const char* text;
  const char* key;
  Verdict verdict;
};
constexpr NameCase kOtherNames[] = {
    {"data.dataset_name=toy", "data.dataset_name", Verdict::kUsed},
    {"trainer.max_steps=10", "trainer.total_training_steps", Verdict::kUsed},
    {"trainer.log_interval=2", "trainer.log_interval", Verdict::kUsed},
    {"num_train_epochs=3", "trainer.total_epochs", Verdict::kUsed},
    {"async_rollout=False", "async_rollout", Verdict::kNoEffect},
    {"async_rollout=True", "async_rollout", Verdict::kNoEffect},
    {"gradient_checkpointing=False", "actor_rollout_ref.model.enable_gradient_checkpointing",
     Verdict::kUsed},
    {"actor_rollout_ref.rollout.repetition_penalty=1.0",
     "actor_rollout_ref.rollout.repetition_penalty", Verdict::kUsed},
    {"actor_rollout_ref.rollout.repetition_penalty=1.1",
     "actor_rollout_ref.rollout.repetition_penalty", Verdict::kUsed},
    {"actor_rollout_ref.model.use_rmpad=True", "actor_rollout_ref.model.use_remove_padding",
     Verdict::kNoEffect},
    {"actor_rollout_ref.model.lora.adapter_path=DIR", "actor_rollout_ref.model.lora_adapter_path",
     Verdict::kUsed},
    {"actor_rollout_ref.actor.profiler.tool_config.nsys.discrete=True",
     "actor_rollout_ref.actor.profiler.tool_config.nsys.discrete", Verdict::kNoEffect},
    {"profile=steps[3,4]", "global_profiler.steps", Verdict::kUsed},
    {"trainer.profile_steps=[1,2,5]", "global_profiler.steps", Verdict::kUsed},
    {"global_profiler.tool=nsys", "global_profiler.tool", Verdict::kNoEffect},
    {"actor_rollout_ref.actor.profile_ranks=[0]", "actor_rollout_ref.actor.profiler.ranks",
     Verdict::kUsed},
    {"actor_rollout_ref.actor.profile_discrete=True", "actor_rollout_ref.actor.profile_discrete",
     Verdict::kNoEffect},
    {"distillation.enabled=False", "distillation.enabled", Verdict::kUsed},
    {"distillation.enabled=True", "distillation.enabled", Verdict::kUsed},
    {"distillation.distillation_loss.loss_mode=k1", "distillation.distillation_loss.loss_mode",
     Verdict::kUsed},
    {"distillation.distillation_loss.loss_mode=forward_kl_topk",
     "distillation.distillation_loss.loss_mode", Verdict::kRefused},
    {"distillation.distillation_loss.policy_loss_mode=gspo",
     "distillation.distillation_loss.policy_loss_mode", Verdict::kRefused},
    {"distillation.teacher_models.teacher_model.inference.enforce_eager=True",
     "distillation.teacher_models.teacher_model.inference.enforce_eager", Verdict::kNoEffect},
    {"+distillation.teacher_models.second.model_path=DIR",
     "distillation.teacher_models.second.model_path", Verdict::kUsed},
    {"distillation.distillation_loss.topk=64", "distillation.distillation_loss.topk",
     Verdict::kNoEffect},
    {"actor_rollout_ref.model.custom_forward=True", "actor_rollout_ref.model.custom_forward",
     Verdict::kUsed},
    {"parallel_config.tensor_parallel_size=2", "parallel_config.tensor_parallel_size",
     Verdict::kUsed},
    {"parallel_config.tensor_parallel_size=auto", "parallel_config.tensor_parallel_size",
     Verdict::kUsed},
    {"parallel_config.pipeline_parallel_size=auto", "parallel_config.pipeline_parallel_size",
     Verdict::kUsed},
    {"parallel_config.pipeline_parallel_size=two", "parallel_config.pipeline_parallel_size",
     Verdict::kInvalid},
    {"reward_model.reward_manager=naive", "reward.reward_manager.name", Verdict::kUsed},
    {"reward_model.enable=False", "reward.reward_model.enable", Verdict::kUsed}};

TEST(Check, UnderstandsOlderAndColloquialNames) {
  for (const NameCase& old : kOtherNames) {
    const KeyCheck key = only(old.text);
    EXPECT_EQ(key.key, old.key) << old.text;
    EXPECT_EQ(key.verdict, old.verdict) << old.text << ": " << key.meaning;
    EXPECT_NE(key.meaning, "") << old.text;
  }
}

TEST(Check, OlderNamesOfRewardsLeadToThoseOfToday) {
  // What these do is decided where rewards are; the names must lead there.
  EXPECT_EQ(canonical_key("custom_reward_function.path"), "reward.custom_reward_function.path");
  EXPECT_EQ(canonical_key("custom_reward_function.overlong_buffer.len"),
            "reward.reward_kwargs.overlong_buffer_cfg.len");
  EXPECT_EQ(canonical_key("reward_model.model.path"), "reward.reward_model.model_path");
  EXPECT_EQ(canonical_key("reward_model.rollout.name"), "reward.reward_model.rollout.name");
  EXPECT_EQ(canonical_key("reward_model.sandbox_fusion.url"), "reward.sandbox_fusion.url");
}

TEST(Check, EmptyListsOfChoicesTakeAnyLogger) {
  EXPECT_TRUE(check({"trainer.logger=['console','wandb','json_eval']"}).passes());
}

TEST(Check, AnyDeviceOfVerlsIsUnderstood) {
  EXPECT_EQ(only("trainer.device=npu").verdict, Verdict::kUsed);
  EXPECT_EQ(only("trainer.device=tpu").verdict, Verdict::kRefused);
}

// Also with verl's default: scripts repeat it.
TEST(Check, AKeyWithoutEffectHasNoneWhateverItsValue) {
  for (const char* value : {"1", "2"})
    EXPECT_EQ(
        only(std::string("actor_rollout_ref.rollout.tensor_model_parallel_size=") + value).verdict,
        Verdict::kNoEffect)
        << value;
}

TEST(Check, AScriptThatConfiguresACriticAndNoAlgorithmMeansGae) {
  const ConfigCheck critic = check({"critic.optim.lr=1e-5"});
  EXPECT_EQ(critic.notes,
            std::vector<std::string>{
                "algorithm.adv_estimator is not set, and critic.* is: gae, verl's default"});
  EXPECT_EQ(*Config::load({std::nullopt, {"critic.optim.lr=1e-5"}})
                 ->get_string("algorithm.adv_estimator"),
            "gae");
  EXPECT_EQ(*Config::load({std::nullopt, {"critic.optim.lr=1e-5", "algorithm.adv_estimator=rloo"}})
                 ->get_string("algorithm.adv_estimator"),
            "rloo");
  EXPECT_EQ(*Config::load({std::nullopt, {"data.seed=1"}})->get_string("algorithm.adv_estimator"),
            "grpo");
  EXPECT_TRUE(check({"critic.optim.lr=1e-5", "algorithm.adv_estimator=grpo"}).notes.empty());
  EXPECT_EQ(to_json(critic)["notes"].size(), 1u);
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
    if (row.support != KeySupport::kSupported) continue;
    EXPECT_FALSE(train_keys().description(row.key).empty())
        << row.key << ": say in rl/config/keys.inc what it does";
  }
}

}  // namespace
}  // namespace rl
