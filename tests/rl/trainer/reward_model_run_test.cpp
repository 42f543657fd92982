// Runs whose reward is a model.
#include <gtest/gtest.h>

#include "rl/model/head.h"
#include "rl/model/save.h"
#include "rl/model/transformer.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class RewardModelRunTest : public TrainerTest {
 protected:
  // A classifier of random weights: what it likes is arbitrary, and can be learned all the same.
  std::string classifier() const {
    const fs::path path = folder_ / "classifier";
    EXPECT_TRUE(
        make_toy_model(path, {.layers = 1, .hidden_size = 32, .intermediate_size = 32, .seed = 7})
            .ok());
    const auto model =
        Transformer::load(with_task(*ModelConfig::load(path), ModelTask::kSequenceClassification),
                          path, /*head_seed=*/5);
    EXPECT_TRUE(model.ok() &&
                save_model_folder((*model)->config(), (*model)->parameters(), path).ok());
    return path.string();
  }

  // The mean score of steps [first, last).
  double mean_score(const fs::path& run, std::size_t first, std::size_t last) const {
    const std::vector<std::string> lines = numbers(run);
    EXPECT_GE(lines.size(), last);
    double sum = 0;
    for (std::size_t step = first; step < std::min(last, lines.size()); ++step)
      sum += nlohmann::json::parse(lines[step])["data"].value("critic/score/mean", 0.0);
    return sum / static_cast<double>(last - first);
  }
};

TEST_F(RewardModelRunTest, TwentyStepsRaiseItsScore) {
  const std::string options =
      "trainer.total_training_steps=20 data.train_batch_size=8 actor_rollout_ref.rollout.n=8 "
      "actor_rollout_ref.actor.optim.lr=3e-3 reward_model.enable=true reward_model.model.path=" +
      classifier() + " ";
  const Outcome run = train(options);
  ASSERT_EQ(run.code, 0) << run.output;
  const double before = mean_score(folder_ / "run", 0, 3),
               after = mean_score(folder_ / "run", 17, 20);
  EXPECT_GT(after, before + 0.05) << before << " -> " << after;

  // Two workers each load it, and give the same numbers for the same samples: the first step's have
  // one policy.
  const fs::path two = folder_ / "two";
  const Outcome again = train(options +
                              "trainer.total_training_steps=1 trainer.n_gpus_per_node=2 "
                              "trainer.cpus_per_worker=1 trainer.default_local_dir=" +
                              two.string());
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_DOUBLE_EQ(mean_score(two, 0, 1), mean_score(folder_ / "run", 0, 1));
}

// The policy learns from these scores, so that later steps compare all earlier ones.
TEST_F(RewardModelRunTest, KeptOnceItGivesTheSameScores) {
  const std::string options =
      "trainer.total_training_steps=3 data.train_batch_size=8 trainer.n_gpus_per_node=2 "
      "reward_model.enable=true reward_model.model.path=" +
      classifier() + " trainer.default_local_dir=";
  const fs::path whole = folder_ / "whole", once = folder_ / "once";
  Outcome run = train(options + whole.string());
  ASSERT_EQ(run.code, 0) << run.output;
  run = train(options + once.string() + " +reward_model.model.fsdp_config.zero_level=3");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("reward_model.model: 2 workers keep the weights once"),
            std::string::npos)
      << run.output;
  for (std::size_t step = 0; step < 3; ++step)
    EXPECT_EQ(mean_score(once, step, step + 1), mean_score(whole, step, step + 1)) << step;
}

TEST_F(RewardModelRunTest, WhatCannotScoreIsToldBeforeTheFirstStep) {
  Outcome run = train("reward.reward_model.enable=true reward.reward_model.model_path=" + model());
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("reward.reward_model.model_path"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("this is not a reward model"), std::string::npos) << run.output;
  run = train("reward.mixture=[{model:/nowhere}]");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("reward.mixture[0].model"), std::string::npos) << run.output;

  run = train("--dry-run reward.reward_model.enable=true reward.reward_model.model_path=" +
              classifier());
  EXPECT_EQ(run.code, 0) << run.output;
  const std::size_t line = run.output.find("reward x ");
  ASSERT_NE(line, std::string::npos) << run.output;
  EXPECT_LT(run.output.find("(weights ", line), run.output.find('\n', line)) << run.output;
  run = train("--dry-run reward.reward_model.enable=true");
  EXPECT_NE(run.code, 0);
  EXPECT_NE(run.output.find("needs reward.reward_model.model_path"), std::string::npos)
      << run.output;
}

}  // namespace
}  // namespace rl
