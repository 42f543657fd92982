// Whole runs whose responses go on from step to step.
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class PartialTest : public TrainerTest {
 protected:
  std::vector<nlohmann::json> steps(const std::string& name) const {
    std::vector<nlohmann::json> read;
    for (const std::string& line : numbers(folder_ / name))
      read.push_back(nlohmann::json::parse(line)["data"]);
    return read;
  }
  // Responses of very different lengths: of a model that knows nothing the end comes by chance.
  Outcome run(const std::string& name, const std::string& options) const {
    return train(
        "trainer.v1.trainer_mode=colocate_async data.max_response_length=40 "
        "actor_rollout_ref.rollout.n=2 trainer.default_local_dir=" +
        (folder_ / name).string() + " " + options);
  }
  static double number(const nlohmann::json& step, const std::string& name) {
    return step.at("training/off_policy/" + name).get<double>();
  }
};

TEST_F(PartialTest, LongResponsesGoOnWithNewWeights) {
  const Outcome partial =
      run("partial", "trainer.total_training_steps=6 trainer.rollout_data_dir=" +
                         (folder_ / "samples").string());
  ASSERT_EQ(partial.code, 0) << partial.output;
  const auto metrics = steps("partial");
  ASSERT_EQ(metrics.size(), 6U);
  EXPECT_EQ(number(metrics[0], "trajectory_spans/max"), 1.0);
  EXPECT_EQ(number(metrics[0], "trajectory_staleness_worst/max"), 0.0);
  double spans = 0, fresh = 1e9;
  for (const auto& step : metrics) {
    spans = std::max(spans, number(step, "trajectory_spans/max"));
    fresh = std::min(fresh, number(step, "trajectory_spans/min"));
    EXPECT_GE(number(step, "trajectory_staleness_worst/mean"),
              number(step, "trajectory_staleness/mean"));
  }
  EXPECT_GE(spans, 2.0) << "no response was drawn by the weights of two steps";
  EXPECT_EQ(fresh, 1.0);
  // Short responses come first, and no prompt is lost or trained on twice.
  EXPECT_LT(metrics.front()["response_length/mean"].get<double>(),
            metrics.back()["response_length/mean"].get<double>());
  std::size_t samples = 0;
  for (int step = 1; step <= 6; ++step) {
    std::ifstream in(folder_ / "samples" / (std::to_string(step) + ".jsonl"));
    for (std::string line; std::getline(in, line);) ++samples;
  }
  EXPECT_EQ(samples, 6U * 4U * 2U);
  ASSERT_EQ(run("again", "trainer.total_training_steps=6").code, 0);
  EXPECT_EQ(numbers(folder_ / "partial"), numbers(folder_ / "again"));
}

TEST_F(PartialTest, ARunThatIsTakenUpGoesOnWithTheSameNumbers) {
  const std::string options =
      "trainer.save_freq=3 trainer.total_training_steps=6 actor_rollout_ref.actor.use_kl_loss=true "
      "trainer.v1.colocate_async.num_warmup_batches=2 ";
  const Outcome whole = run("whole", options);
  ASSERT_EQ(whole.code, 0) << whole.output;
  const std::string from = "trainer.resume_mode=resume_path trainer.resume_from_path=" +
                           (folder_ / "whole" / "global_step_3").string();
  const Outcome rest = run("rest", options + from);
  ASSERT_EQ(rest.code, 0) << rest.output;
  const auto all = numbers(folder_ / "whole"), last = numbers(folder_ / "rest");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(std::vector<std::string>(all.end() - 3, all.end()), last);
  const fs::path model = fs::path("global_step_6") / "actor" / "huggingface" / "model.safetensors";
  EXPECT_EQ(read(folder_ / "whole" / model), read(folder_ / "rest" / model));

  const Outcome two = run(
      "two", options + "trainer.n_gpus_per_node=2 " + from);  // what is on its way is dealt anew
  EXPECT_EQ(two.code, 0) << two.output;
  EXPECT_EQ(numbers(folder_ / "two").size(), 3U);
  const Outcome other = run(
      "other",
      options + "data.train_batch_size=3 actor_rollout_ref.actor.ppo_mini_batch_size=3 " + from);
  EXPECT_NE(other.code, 0);
  EXPECT_NE(
      other.output.find(
          "partial.bin: 8 prompts are in progress, which is not a whole number of batches of 3"),
      std::string::npos)
      << other.output;
}

TEST_F(PartialTest, AgeHasALimit) {
  const std::string options =
      "trainer.total_training_steps=5 trainer.v1.sampler.max_off_policy_threshold=1 ";
  const Outcome anew = run("anew", options);
  ASSERT_EQ(anew.code, 0) << anew.output;
  double begun_anew = 0;
  for (const auto& step : steps("anew")) {
    EXPECT_EQ(number(step, "trajectory_staleness_worst/max"), 0.0);
    begun_anew += number(step, "begun_anew");
  }
  EXPECT_EQ(begun_anew, 16.0) << "of steps 2 to 5 the four prompts that step before left over";
  const Outcome waits = run("waits", options + "trainer.v1.sampler.max_off_policy_strategy=wait");
  ASSERT_EQ(waits.code, 0) << waits.output;
  double spans = 0;
  for (const auto& step : steps("waits")) {
    EXPECT_LE(number(step, "trajectory_staleness_worst/max"), 1.0);
    EXPECT_EQ(number(step, "begun_anew"), 0.0);
    spans = std::max(spans, number(step, "trajectory_spans/max"));
  }
  EXPECT_EQ(spans, 2.0);
}

}  // namespace
}  // namespace rl
