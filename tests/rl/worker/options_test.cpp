// What the configuration makes of policy, schedule and slots.
#include <gtest/gtest.h>

#include <cmath>

#include "rl/worker/policy_options.h"
#include "rl/worker/worker_group.h"

namespace rl {
namespace {

Config config(std::vector<std::string> overrides = {}) {
  overrides.push_back("actor_rollout_ref.model.path=/model");
  auto config = Config::load({.file = std::nullopt, .overrides = overrides});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return std::move(*config);
}

TEST(PolicyOptions, TakesVerlsDefaults) {
  const auto options = PolicyOptions::from_config(config());
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->training.samples, 1);
  EXPECT_EQ(options->training.temperature, 1.0F);
  EXPECT_EQ(options->validation.temperature, 0.0F);
  EXPECT_EQ(options->objective.clip.low, 0.2);
  EXPECT_EQ(options->objective.clip.high, 0.2);
  EXPECT_EQ(options->objective.clip.dual, 3.0);
  EXPECT_EQ(options->objective.aggregation, AggregationMode::kTokenMean);
  EXPECT_EQ(options->objective.kl_penalty.estimator, KlEstimator::kK3);
  EXPECT_EQ(options->learner.adamw.weight_decay, 0.01F);
  EXPECT_EQ(options->learner.grad_norm_max, 1.0);
  EXPECT_EQ(options->positions_max, 1024);
  EXPECT_GT(options->micro_batch.tokens_max, 0);
}

TEST(PolicyOptions, AMicroBatchInSamplesReplacesTheOneInTokens) {
  const auto options = PolicyOptions::from_config(config({"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2"}));
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->micro_batch, (MicroBatchLimits{.samples_max = 2, .tokens_max = 0}));
}

TEST(PolicyOptions, NamesTheKeyThatIsOutOfRange) {
  for (const char* wrong : {"actor_rollout_ref.rollout.n=0", "actor_rollout_ref.rollout.temperature=0", "actor_rollout_ref.actor.clip_ratio_low=1.5",
                            "actor_rollout_ref.actor.clip_ratio_c=1", "actor_rollout_ref.actor.ppo_epochs=0", "data.max_prompt_length=0",
                            "actor_rollout_ref.actor.optim.weight_decay=-1", "actor_rollout_ref.actor.optim.betas=[0.9,1.0]"}) {
    const auto options = PolicyOptions::from_config(config({wrong}));
    ASSERT_FALSE(options.ok()) << wrong;
    const std::string key = std::string(wrong).substr(0, std::string(wrong).find('='));
    EXPECT_NE(options.status().message().find(key), std::string::npos) << options.status().to_string();
  }
}

TEST(LrSchedule, WarmsUpForARatioOfTheRun) {
  const std::string optim = "actor_rollout_ref.actor.optim.";
  const auto schedule = lr_schedule_from_config(config({optim + "lr=1e-3", optim + "lr_scheduler_type=cosine", optim + "lr_warmup_steps_ratio=0.1"}), 50);
  ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
  EXPECT_EQ(schedule->kind, LrScheduleOptions::Kind::kCosine);
  EXPECT_EQ(schedule->peak, 1e-3);
  EXPECT_EQ(schedule->warmup_steps, 5);
  EXPECT_EQ(schedule->total_steps, 50);
  EXPECT_FALSE(lr_schedule_from_config(config({optim + "lr_warmup_steps_ratio=2"}), 50).ok());
}

TEST(SlotOptions, OneWorkerANodeUnlessToldOtherwise) {
  const auto options = SlotOptions::from_config(config());
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->nodes, 1);
  EXPECT_EQ(options->per_node, 1);
  EXPECT_EQ(SlotOptions::from_config(config({"trainer.nnodes=2", "trainer.n_gpus_per_node=3"}))->per_node, 3);
  EXPECT_FALSE(SlotOptions::from_config(config({"trainer.nnodes=0"})).ok());
  EXPECT_EQ(SlotOptions::from_config(config({"trainer.device=cuda"})).status().code(), runtime::ErrorCode::kUnimplemented);
}

TEST(WorkerSlots, AWorkerHasAtLeastOneThread) {
  WorkerSlots slots;
  slots.cpus = 0.5;
  EXPECT_EQ(slots.threads(), 1);
  slots.cpus = 3.7;
  EXPECT_EQ(slots.threads(), 3);
  slots.nodes = 2;
  slots.per_node = 4;
  EXPECT_EQ(slots.size(), 8);
}

}  // namespace
}  // namespace rl
