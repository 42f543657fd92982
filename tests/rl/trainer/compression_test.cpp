// Runs whose workers send each other compressed gradients.
#include <cmath>
#include <string>
#include <vector>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

const std::vector<std::string> kSchemes{
    "trainer.gradient_compression=fp16",
    "trainer.gradient_compression=topk trainer.gradient_topk_ratio=0.1"};

class CompressionTest : public TrainerTest {
 protected:
  std::string sft_command(const std::string& arguments, const std::string& run) const {
    return "exec " STARLING_BIN_DIR
           "/starling-rl sft data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
           "data.toy.rows=64 data.train_batch_size=16 data.max_length=32 optim.lr=1e-2 "
           "trainer.n_gpus_per_node=2 trainer.logger=[console,file] model.path=" +
           model() + " trainer.default_local_dir=" + (folder_ / run).string() + " " + arguments;
  }

  // The mean of a metric over the last steps of a run.
  double last(const std::string& name, const std::string& run, std::size_t steps = 5) const {
    std::vector<double> values;
    for (const std::string& line : numbers(folder_ / run)) {
      const auto json = nlohmann::json::parse(line);
      if (json["data"].contains(name)) values.push_back(json["data"][name].get<double>());
    }
    EXPECT_GE(values.size(), steps) << name << " of " << run;
    if (values.size() < steps) return 0.0;
    double sum = 0.0;
    for (std::size_t i = values.size() - steps; i < values.size(); ++i) sum += values[i];
    return sum / static_cast<double>(steps);
  }
};

TEST_F(CompressionTest, StagesLearnAboutWhatTheyDoWithWholeGradients) {
  const std::string steps = "trainer.save_freq=0 trainer.total_training_steps=30 ";
  const Outcome whole = shell(sft_command(steps, "whole"));
  ASSERT_EQ(whole.code, 0) << whole.output;
  const double loss = last("train/loss", "whole");
  EXPECT_LT(loss, 1.3);
  for (const std::string& scheme : kSchemes) {
    for (const char* level : {"0", "1"}) {
      SCOPED_TRACE(scheme + ", level " + level);
      const std::string run = std::string("level") + level + std::to_string(scheme.size());
      const Outcome compressed =
          shell(sft_command(steps + scheme + " engine.zero_level=" + level, run));
      ASSERT_EQ(compressed.code, 0) << compressed.output;
      const bool is_half = &scheme == &kSchemes.front();
      EXPECT_NEAR(last("train/loss", run), loss, is_half ? 0.1 : 0.4);
      EXPECT_NE(last("train/loss", run), loss) << "nothing was compressed";
    }
  }
}

TEST_F(CompressionTest, APolicyAndItsCriticLearn) {
  const std::string command = train_command(
      "data.train_batch_size=8 trainer.total_training_steps=4 sft.steps=2 "
      "sft.train_batch_size=8 algorithm.adv_estimator=gae critic.optim.lr=1e-3 "
      "critic.fsdp.zero_level=1 trainer.n_gpus_per_node=2 ");
  for (const std::string& scheme : kSchemes) {
    const Outcome run = shell("exec " + command + scheme);
    ASSERT_EQ(run.code, 0) << run.output;
    EXPECT_GT(last("actor/grad_norm", "run", 4), 0.0);
    EXPECT_GT(last("critic/grad_norm", "run", 4), 0.0);
    fs::remove_all(folder_ / "run");
  }
}

TEST_F(CompressionTest, ARunThatGoesOnSaysWhatItBeginsWithout) {
  const std::string topk = kSchemes.back() + " trainer.total_training_steps=";
  ASSERT_EQ(shell(sft_command(topk + "4", "run")).code, 0);
  const Outcome rest = shell(sft_command(topk + "8", "run"));
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("continuing after step 4"), std::string::npos) << rest.output;
  EXPECT_NE(rest.output.find("what was not sent before the checkpoint is no part of it"),
            std::string::npos)
      << rest.output;
}

TEST_F(CompressionTest, DryRunCountsItAndRefusesWhatDoesNotGoWithIt) {
  const std::string topk = "--dry-run " + kSchemes.back();
  const Outcome counted = shell(sft_command(topk, "run"));
  EXPECT_EQ(counted.code, 0) << counted.output;
  EXPECT_NE(counted.output.find("residual of gradients"), std::string::npos) << counted.output;
  const Outcome alone = shell(sft_command(topk + " trainer.n_gpus_per_node=1", "run"));
  EXPECT_NE(alone.output.find("trainer.gradient_compression=topk has no effect with one worker"),
            std::string::npos)
      << alone.output;
  for (const char* how : {"", "--dry-run "}) {
    const Outcome refused =
        shell(sft_command(how + kSchemes.back() + " engine.zero_level=2", "run"));
    EXPECT_NE(refused.code, 0);
    EXPECT_NE(refused.output.find("trainer.gradient_compression: must be none with "
                                  "engine.zero_level=2"),
              std::string::npos)
        << refused.output;
    EXPECT_FALSE(fs::exists(folder_ / "run" / "metrics.jsonl"));
  }
  const Outcome rl =
      train("--dry-run trainer.n_gpus_per_node=2 trainer.gradient_leaves=4 " + kSchemes.back());
  EXPECT_NE(rl.code, 0);
  EXPECT_NE(rl.output.find("trainer.gradient_compression: must be none with "
                           "trainer.gradient_leaves=4"),
            std::string::npos)
      << rl.output;
}

}  // namespace
}  // namespace rl
