// dtype=bfloat16 from the command line: all roles that compute in it, and a run that learns.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

std::vector<double> column(const std::vector<std::string>& lines, const std::string& name) {
  std::vector<double> values;
  for (const std::string& line : lines)
    values.push_back(nlohmann::json::parse(line)["data"][name].get<double>());
  return values;
}

double mean(const std::vector<double>& values, std::size_t begin, std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = begin; i < begin + count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

TEST_F(TrainerTest, InBf16TheToyTaskIsLearned) {
  const Outcome run = train(
      "actor_rollout_ref.actor.fsdp_config.dtype=bfloat16 data.train_batch_size=16 "
      "actor_rollout_ref.rollout.n=8 actor_rollout_ref.actor.ppo_mini_batch_size=16 "
      "actor_rollout_ref.actor.optim.lr=3e-3 sft.steps=20 sft.lr=1e-3 "
      "trainer.total_training_steps=60");
  ASSERT_EQ(run.code, 0) << run.output;
  std::vector<std::string> steps;
  for (const std::string& line : numbers(folder_ / "run")) {
    if (nlohmann::json::parse(line)["data"].contains("critic/score/mean")) steps.push_back(line);
  }
  ASSERT_EQ(steps.size(), 60u);
  const std::vector<double> scores = column(steps, "critic/score/mean");
  EXPECT_GT(mean(scores, 50, 10), mean(scores, 0, 10) + 0.1) << run.output;
  for (const double difference : column(steps, "training/rollout_probs_diff_mean")) {
    EXPECT_GT(difference, 0.0);
    EXPECT_LT(difference, 0.02);
  }
}

TEST_F(TrainerTest, CriticAndReferenceComputeInBf16Too) {
  const std::string roles =
      "algorithm.adv_estimator=gae actor_rollout_ref.actor.use_kl_loss=true "
      "trainer.total_training_steps=2 ";
  const Outcome run =
      train(roles +
            "actor_rollout_ref.actor.fsdp_config.dtype=bf16 critic.fsdp.dtype=bfloat16 "
            "critic.model.enable_gradient_checkpointing=true");
  ASSERT_EQ(run.code, 0) << run.output;
  // The reference follows the policy: at equal weights nothing lies between them.
  EXPECT_EQ(column(numbers(folder_ / "run"), "actor/kl_loss")[0], 0.0) << run.output;
  EXPECT_EQ(column(numbers(folder_ / "run"), "actor/ppo_kl")[0], 0.0) << run.output;
  const Outcome refused = train(roles + "actor_rollout_ref.actor.fsdp_config.dtype=float16");
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.output.find("fp16, which needs a scaled loss, is not built"), std::string::npos)
      << refused.output;
}

}  // namespace
}  // namespace rl
