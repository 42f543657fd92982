// Runs of one team whose passes have the rows of all its workers.
#include <gtest/gtest.h>

#include <string>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class JointPassesTest : public TrainerTest {
 protected:
  // The model that a run on this many workers writes at its end.
  std::string model_after(const std::string& name, const std::string& command, int workers) {
    const fs::path folder = folder_ / name;
    const Outcome run =
        shell("exec " + command + " trainer.save_freq=-1 trainer.n_gpus_per_node=" +
              std::to_string(workers) + " trainer.default_local_dir=" + folder.string());
    EXPECT_EQ(run.code, 0) << run.output;
    std::string weights;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().filename() == "model.safetensors") weights += read(entry.path());
    EXPECT_FALSE(weights.empty()) << run.output;
    return weights;
  }
};

// Rows of data are dealt by length, so that one worker has them in another order. What a team
// shares makes no difference.
TEST_F(JointPassesTest, RowsOfDataHaveTheSameNumbersWhateverIsShared) {
  const std::string command =
      STARLING_BIN_DIR
      "/starling-rl sft data.dataset_name=toy data.toy.letters=4 data.toy.length=2 optim.lr=1e-3 "
      "data.train_batch_size=6 trainer.total_training_steps=4 trainer.logger=[console,file] "
      "model.path=" +
      model();
  model_after("alone", command, 1);
  const std::string outputs =
      model_after("outputs", command + " engine.tensor_model_parallel_size=2", 2);
  EXPECT_TRUE(model_after("rows", command + " engine.ulysses_sequence_parallel_size=2", 2) ==
              outputs);
  const auto alone = steps_of(folder_ / "alone"), shared = steps_of(folder_ / "outputs");
  ASSERT_EQ(alone.size(), 4u);
  ASSERT_EQ(shared.size(), alone.size());
  for (std::size_t step = 0; step < alone.size(); ++step) {
    for (const char* metric : {"train/loss", "train/grad_norm"}) {
      const double expected = alone[step].at(metric);
      EXPECT_NEAR(shared[step].at(metric), expected, 1e-5 * expected) << metric << " of " << step;
    }
  }
}

// With mini-batches of which each worker has one prompt.
TEST_F(JointPassesTest, PoliciesAndCriticsHaveTheNumbersOfOneWorker) {
  const std::string command = train_command(
      "trainer.total_training_steps=3 algorithm.adv_estimator=gae critic.optim.lr=1e-3 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=2 actor_rollout_ref.actor.use_kl_loss=true");
  const std::string alone = model_after("alone", command, 1);
  EXPECT_TRUE(model_after("outputs", command + " parallel_config.tensor_parallel_size=2", 2) ==
              alone);
  EXPECT_TRUE(model_after("rows",
                          command + " actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 "
                                    "critic.ulysses_sequence_parallel_size=2",
                          2) == alone);
}

}  // namespace
}  // namespace rl
