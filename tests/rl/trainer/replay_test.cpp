// Whole runs with a sample store.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class ReplayTest : public TrainerTest {
 protected:
  std::vector<nlohmann::json> steps(const std::string& name) const {
    std::vector<nlohmann::json> read;
    for (const std::string& line : numbers(folder_ / name))
      read.push_back(nlohmann::json::parse(line)["data"]);
    return read;
  }
  Outcome run(const std::string& name, const std::string& options) const {
    return train("sample_store.enable=true " + options +
                 " trainer.default_local_dir=" + (folder_ / name).string());
  }
};

TEST_F(ReplayTest, EarlierGroupsAreTrainedOnBesideFreshOnes) {
  const Outcome outcome = run(
      "run", "trainer.total_training_steps=4 sample_store.replay_ratio=0.5 sample_store.max_age=2");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto records = steps("run");
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0]["sample_store/replayed"], 0.0) << "there is nothing yet";
  for (std::size_t i = 1; i < records.size(); ++i) {
    EXPECT_GT(records[i]["sample_store/replayed"].get<double>(), 0.0);
    EXPECT_LE(records[i]["sample_store/replayed_age_mean"].get<double>(), 2.0);
  }
  // What is replayed was drawn by other weights: ratios are no longer 1 before the first update.
  EXPECT_NE(records[2]["actor/ppo_kl"].get<double>(), 0.0);
}

TEST_F(ReplayTest, ARunThatWasCutGoesOnWithTheSameNumbers) {
  for (const std::string workers : {"1", "2"}) {
    SCOPED_TRACE(workers + " workers");
    const std::string options =
        "trainer.save_freq=2 sample_store.max_uses=2 sample_store.order=variance "
        "actor_rollout_ref.actor.ppo_mini_batch_size=2 trainer.cpus_per_worker=1 "
        "trainer.n_gpus_per_node=" +
        workers + " trainer.total_training_steps=";
    const std::string whole = "whole" + workers, cut = "cut" + workers;
    ASSERT_EQ(run(whole, options + "6").code, 0);
    ASSERT_EQ(run(cut, options + "4").code, 0);
    const Outcome rest = run(cut, options + "6");
    ASSERT_EQ(rest.code, 0) << rest.output;
    EXPECT_NE(rest.output.find("continuing after step 4"), std::string::npos) << rest.output;
    EXPECT_EQ(numbers(folder_ / whole), numbers(folder_ / cut));
    EXPECT_EQ(
        read(folder_ / whole / "global_step_6" / "actor" / "huggingface" / "model.safetensors"),
        read(folder_ / cut / "global_step_6" / "actor" / "huggingface" / "model.safetensors"));
  }
}

TEST_F(ReplayTest, TwoWorkersTrainOnTheSameGroups) {
  const std::string options = "trainer.total_training_steps=3 ";
  ASSERT_EQ(run("one", options).code, 0);
  const Outcome two = run("two", options + "trainer.n_gpus_per_node=2");
  ASSERT_EQ(two.code, 0) << two.output;
  const auto one_steps = steps("one"), two_steps = steps("two");
  ASSERT_EQ(one_steps.size(), two_steps.size());
  for (std::size_t i = 0; i < one_steps.size(); ++i) {
    for (const char* name : {"critic/score/mean", "sample_store/replayed", "sample_store/size"})
      EXPECT_NEAR(one_steps[i][name].get<double>(), two_steps[i][name].get<double>(), 1e-9) << name;
  }
}

TEST_F(ReplayTest, GoesWithDynamicSamplingAndWithACritic) {
  for (const std::string algorithm :
       {"algorithm.filter_groups.enable=true actor_rollout_ref.actor.use_kl_loss=true",
        "algorithm.adv_estimator=gae algorithm.use_kl_in_reward=true",
        "algorithm.adv_estimator=remax"}) {
    const Outcome outcome = run("run" + std::to_string(algorithm.size()),
                                "trainer.total_training_steps=3 " + algorithm);
    ASSERT_EQ(outcome.code, 0) << algorithm << outcome.output;
    EXPECT_GT(steps("run" + std::to_string(algorithm.size()))
                  .back()["sample_store/replayed"]
                  .get<double>(),
              0.0)
        << algorithm;
  }
}

}  // namespace
}  // namespace rl
