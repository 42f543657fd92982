// Whole runs of `starling-rl dpo`, `kto` and `rm`.
#include <cmath>

#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class PreferenceStageTest : public TrainerTest {
 protected:
  // 36 prompts and 360 pairs: most of those to validate with were not among those trained on.
  std::string command_line(const std::string& command, const std::string& arguments,
                           const std::string& folder = "run") const {
    return STARLING_BIN_DIR "/starling-rl " + command +
           " data.dataset_name=toy data.toy.task=copy data.toy.letters=6 data.toy.length=2 "
           "data.toy.rows=512 data.train_batch_size=16 data.max_length=32 optim.lr=1e-3 "
           "model.path=" +
           model() + " trainer.logger=[console,file] trainer.default_local_dir=" +
           (folder_ / folder).string() + " " + arguments;
  }
  Outcome run(const std::string& command, const std::string& arguments,
              const std::string& folder = "run") const {
    return shell("exec " + command_line(command, arguments, folder));
  }

  // One metric of every step that has it.
  std::vector<double> metric(const std::string& name, const std::string& folder = "run") const {
    std::vector<double> values;
    for (const std::string& line : numbers(folder_ / folder)) {
      const auto json = nlohmann::json::parse(line);
      if (json["data"].contains(name)) values.push_back(json["data"][name].get<double>());
    }
    return values;
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(folder_);
  }
};

TEST_F(PreferenceStageTest, EachLossTrainsTwentySteps) {
  for (const std::string loss :
       {"sigmoid", "ipo", "hinge", "sppo", "orpo", "simpo", "kto", "bradley_terry"}) {
    const bool is_reward_model = loss == "bradley_terry";
    const std::string command = loss == "kto" ? "kto" : is_reward_model ? "rm" : "dpo";
    const Outcome outcome = run(
        command,
        "preference.loss=" + loss + " trainer.total_training_steps=20 trainer.test_freq=20", loss);
    ASSERT_EQ(outcome.code, 0) << loss << "\n" << outcome.output;
    const std::vector<double> losses = metric("train/loss", loss);
    ASSERT_EQ(losses.size(), 20u) << loss << "\n" << outcome.output;
    for (const double value : losses) EXPECT_TRUE(std::isfinite(value)) << loss;
    for (const std::string& name :
         is_reward_model
             ? std::vector<std::string>{"accuracy", "margin", "mean_reward"}
             : std::vector<std::string>{"rewards/chosen", "rewards/rejected", "rewards/margins",
                                        "rewards/accuracies", "logps/chosen", "logps/rejected"}) {
      EXPECT_EQ(metric("train/" + name, loss).size(), 20u) << loss << " " << name;
      EXPECT_EQ(metric("val/" + name, loss).size(), 1u) << loss << " " << name;
    }
    EXPECT_TRUE(fs::exists(folder_ / loss / "global_step_20" / "huggingface" / "tokenizer.json"))
        << loss;
  }
}

// The whole toy model, which has room for the task.
const std::string kLearns = "model.path=toy data.toy.rows=4096 data.train_batch_size=32 ";

TEST_F(PreferenceStageTest, DpoRaisesTheAccuracyOnHeldOutPairs) {
  const Outcome outcome =
      run("dpo", kLearns + "trainer.total_training_steps=60 trainer.test_freq=20");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<double> accuracies = metric("val/rewards/accuracies");
  ASSERT_EQ(accuracies.size(), 3u);
  EXPECT_GT(accuracies.back(), 0.85) << "half of them by chance";
  EXPECT_GT(metric("val/rewards/margins").back(), 0.0);
}

TEST_F(PreferenceStageTest, KtoRaisesTheAccuracyOnHeldOutResponses) {
  const Outcome outcome = run(
      "kto", kLearns + "preference.beta=0.5 trainer.total_training_steps=90 trainer.test_freq=30");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<double> accuracies = metric("val/rewards/accuracies");
  ASSERT_EQ(accuracies.size(), 3u);
  EXPECT_GT(accuracies.back(), 0.8) << "half of them by chance";
}

TEST_F(PreferenceStageTest, ARewardModelTellsHeldOutPairsApart) {
  const Outcome outcome =
      run("rm", kLearns +
                    "optim.lr_scheduler_type=cosine trainer.total_training_steps=120 "
                    "trainer.test_freq=40 preference.center_coefficient=0.01");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const std::vector<double> accuracies = metric("val/accuracy");
  ASSERT_EQ(accuracies.size(), 3u);
  EXPECT_GT(accuracies.back(), 0.9);
  const auto config = nlohmann::json::parse(
      read(folder_ / "run" / "global_step_120" / "huggingface" / "config.json"));
  EXPECT_EQ(config["architectures"][0], "LlamaForSequenceClassification");
  EXPECT_EQ(config["id2label"].size(), 1u);
}

TEST_F(PreferenceStageTest, TwoWorkersTrainAsOneDoes) {
  for (const std::string command : {"dpo", "kto", "rm"}) {
    ASSERT_EQ(
        run(command, "trainer.total_training_steps=3 trainer.test_freq=3", command + "1").code, 0);
    const Outcome outcome = run(command,
                                "trainer.total_training_steps=3 trainer.test_freq=3 "
                                "trainer.n_gpus_per_node=2 data.max_token_len_per_gpu=40",
                                command + "2");
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    for (const char* name : {"train/loss", "train/grad_norm", "val/loss", "train/kl"}) {
      const std::vector<double> one = metric(name, command + "1");
      const std::vector<double> two = metric(name, command + "2");
      ASSERT_EQ(one.size(), two.size()) << name;
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(one[i], two[i], 1e-3 * std::abs(one[i]) + 1e-5)
            << command << " " << name << " of step " << i + 1;
    }
    EXPECT_NEAR(metric("train/grad_norm", command + "1")[0],
                metric("train/grad_norm", command + "2")[0],
                1e-6 * metric("train/grad_norm", command + "1")[0] + 1e-7)
        << command;
  }
}

TEST_F(PreferenceStageTest, ARunGoesOnWithTheSameNumbers) {
  for (const std::string command : {"dpo", "kto", "rm"}) {
    ASSERT_EQ(
        run(command, "trainer.total_training_steps=6 trainer.save_freq=3", command + "-whole").code,
        0);
    ASSERT_EQ(run(command, "trainer.total_training_steps=3", command + "-cut").code, 0);
    const Outcome rest = run(command, "trainer.total_training_steps=6", command + "-cut");
    ASSERT_EQ(rest.code, 0) << rest.output;
    EXPECT_NE(rest.output.find("continuing after step"), std::string::npos) << rest.output;
    for (const std::string name : {"train/loss", "train/grad_norm"})
      EXPECT_EQ(metric(name, command + "-whole"), metric(name, command + "-cut"))
          << command << " " << name;
    const fs::path weights = fs::path("global_step_6") / "huggingface" / "model.safetensors";
    EXPECT_EQ(read(folder_ / (command + "-whole") / weights),
              read(folder_ / (command + "-cut") / weights))
        << command;
  }
}

TEST_F(PreferenceStageTest, AnotherStagesRunIsNotContinued) {
  ASSERT_EQ(run("dpo", "trainer.total_training_steps=2").code, 0);
  for (const char* command : {"kto", "rm"}) {
    const Outcome other = run(command, "trainer.total_training_steps=4");
    EXPECT_EQ(other.code, 1) << other.output;
    EXPECT_NE(other.output.find("of a run of `starling dpo`, not of `starling " +
                                std::string(command) + "`: set trainer.default_local_dir"),
              std::string::npos)
        << other.output;
  }
  const Outcome train = this->train("trainer.total_training_steps=4");
  EXPECT_EQ(train.code, 1) << train.output;
  EXPECT_NE(train.output.find("of a run of `starling dpo`, not of `starling train`"),
            std::string::npos)
      << train.output;
  // To start again is to start one's own run again.
  const Outcome reward_model =
      run("rm", "trainer.total_training_steps=2 trainer.resume_mode=disable");
  EXPECT_NE(reward_model.output.find("of a run of `starling dpo`, not of `starling rm`"),
            std::string::npos)
      << reward_model.output;
  const Outcome unnamed = run(
      "dpo",
      "trainer.total_training_steps=4 trainer.resume_mode=resume_path trainer.resume_from_path=" +
          (folder_ / "run").string());
  EXPECT_NE(unnamed.output.find("has checkpoints and is none: name one of them, like " +
                                (folder_ / "run" / "global_step_2").string()),
            std::string::npos)
      << unnamed.output;
  EXPECT_EQ(metric("train/loss").size(), 2u);
}

// The reference is the base under the adapter, which is taken off for it while a checkpoint is
// written.
TEST_F(PreferenceStageTest, AnAdapterThatIsKilledWhileItIsWrittenGoesOnWithTheSameNumbers) {
  const std::string options =
      "model.lora_rank=4 trainer.total_training_steps=30 trainer.save_freq=1 "
      "trainer.max_ckpt_to_keep=2";
  ASSERT_EQ(run("dpo", options, "whole").code, 0);
  ASSERT_NO_FATAL_FAILURE(
      kill_while_saving(command_line("dpo", options, "killed"), folder_ / "killed"));
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "killed"));
  for (const char* file : {"lora_adapter/adapter_model.safetensors", "lora_adapter/tokenizer.json",
                           "optimizer.safetensors", "trainer.json"}) {
    const std::string bytes = read(folder_ / "whole" / "global_step_30" / file);
    EXPECT_FALSE(bytes.empty()) << file;
    EXPECT_EQ(bytes, read(folder_ / "killed" / "global_step_30" / file)) << file;
  }
  EXPECT_TRUE(
      fs::exists(folder_ / "killed" / "global_step_29" / "lora_adapter" / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "global_step_29" / "huggingface"));
}

TEST_F(PreferenceStageTest, TheBestCheckpointStaysAndTrainingEndsEarly) {
  for (const std::string command : {"dpo", "kto", "rm"}) {
    const Outcome outcome =
        run(command,
            "optim.lr=0 trainer.val_before_train=true trainer.test_freq=1 trainer.save_freq=1 "
            "trainer.max_ckpt_to_keep=1 trainer.total_training_steps=50 trainer.save_best=val/loss "
            "trainer.early_stop.metric=val/loss trainer.early_stop.patience=3",
            command);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(
        outcome.output.find("stopping after step 4: val/loss has not improved in 3 measurements"),
        std::string::npos)
        << outcome.output;
    EXPECT_EQ(metric("val/loss", command).size(), 5u) << command;
    EXPECT_EQ(best_checkpoint_step(folder_ / command), 1) << command;
    EXPECT_TRUE(fs::exists(folder_ / command / "global_step_1")) << command;
    EXPECT_FALSE(fs::exists(folder_ / command / "global_step_2")) << command;
    EXPECT_TRUE(fs::exists(folder_ / command / "global_step_3"))
        << command;  // no step has followed the last
    EXPECT_TRUE(fs::exists(folder_ / command / "global_step_4")) << command;
  }
}

TEST_F(PreferenceStageTest, FilesArePairsForAllThree) {
  std::string rows;
  for (const std::string letters : {"ab", "cd", "ef", "fe", "dc", "ba"}) {
    rows +=
        R"({"prompt": [{"role": "user", "content": "copy )" + letters +
        R"("}], "chosen": [{"role": "assistant", "content": ")" + letters +
        R"("}], "rejected": [{"role": "assistant", "content": "aa"}], "chosen_score": 3, "rejected_score": 1})"
        "\n";
  }
  const std::string file = write("pairs.jsonl", rows);
  const std::string data =
      "data.train_files=" + file + " data.val_files=" + file +
      " data.train_batch_size=3 trainer.total_training_steps=2 trainer.test_freq=1 ";
  for (const std::string command :
       {"dpo", "kto", "rm preference.use_margin=true", "dpo model.lora_rank=4"}) {
    const std::string folder = "files-" + std::to_string(command.size());
    const Outcome outcome = run(command, data, folder);
    ASSERT_EQ(outcome.code, 0) << command << "\n" << outcome.output;
    EXPECT_EQ(metric("val/loss", folder).size(), 2u);
    fs::remove_all(folder_ / folder);
  }
}

TEST_F(PreferenceStageTest, WhatIsWrongIsSaidBeforeAnythingStarts) {
  const std::string file = write("bad.jsonl",
                                 "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": "
                                 "\"c\"}\n{\"prompt\": \"a\", \"chosen\": \"b\"}\n");
  Outcome outcome = run("dpo", "data.train_batch_size=1 data.train_files=" + file);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find(file + ":2: no key 'rejected' (data.columns.rejected)"),
            std::string::npos)
      << outcome.output;
  const auto refuses = [&](const std::string& command, const std::string& arguments,
                           const std::string& part) {
    const Outcome refused = run(command, arguments);
    EXPECT_EQ(refused.code, 1) << refused.output;
    EXPECT_NE(refused.output.find(part), std::string::npos) << refused.output;
  };
  refuses("dpo", "preference.beta=0", "preference.beta");
  const std::string huge =
      write("huge.jsonl",
            "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\", \"margin\": 1e300}\n");
  refuses("rm", "preference.use_margin=true data.train_batch_size=1 data.train_files=" + huge,
          huge + ":1: 'margin' is beyond single precision");
  refuses("dpo", "preference.loss=kto", "preference.loss");
  refuses("dpo", "preference.loss=ipo preference.label_smoothing=0.1",
          "preference.label_smoothing goes with preference.loss=sigmoid and simpo, not with ipo");
  refuses("dpo", "preference.loss=orpo preference.sft_weight=1", "preference.sft_weight");
  refuses("kto", "data.train_batch_size=1", "data.train_batch_size");
  refuses("rm", "model.lora_rank=4", "model.lora_rank=0");
  // A reference of another vocabulary: two letters have changed places.
  const fs::path other = folder_ / "other";
  ASSERT_TRUE(
      make_toy_model(other, {.layers = 1, .hidden_size = 32, .intermediate_size = 32}).ok());
  auto tokenizer = nlohmann::json::parse(read(other / "tokenizer.json"));
  std::swap(tokenizer["model"]["vocab"]["a"], tokenizer["model"]["vocab"]["b"]);
  std::ofstream(other / "tokenizer.json") << tokenizer.dump();
  refuses("dpo", "preference.reference_path=" + other.string(),
          "in the reference " + other.string());
}

TEST_F(PreferenceStageTest, AnswersWithoutTraining) {
  for (const std::string command : {"dpo", "kto", "rm"}) {
    EXPECT_NE(run(command, "--config-print").output.find("preference:"), std::string::npos)
        << command;
    const Outcome dry = run(command, "--dry-run");
    EXPECT_EQ(dry.code, 0) << dry.output;
    EXPECT_NE(dry.output.find("32 an epoch, 128 in all"), std::string::npos) << dry.output;
    EXPECT_NE(dry.output.find("as the model reads it\nits prompt ("), std::string::npos)
        << dry.output;
    for (const char* part : {"the chosen response (", "the rejected response ("})
      EXPECT_EQ(dry.output.find(part) != std::string::npos, command != "kto") << dry.output;
    EXPECT_EQ(dry.output.find("its response, labelled ") != std::string::npos, command == "kto");
    EXPECT_NE(
        dry.output.find(command == "rm" ? "trained on: the reward" : "trained on: the tokens"),
        std::string::npos)
        << dry.output;
    EXPECT_EQ(dry.output.find("frozen model") != std::string::npos, command != "rm")
        << "the reference: " << dry.output;
    const Outcome check = run(command, command == "rm" ? "--check preference.use_margin=true"
                                                       : "--check preference.beta=0.2");
    EXPECT_EQ(check.code, 0) << check.output;
    EXPECT_NE(check.output.find("preference."), std::string::npos) << check.output;
    const std::string help = run(command, "--help").output;
    for (const char* part : {"Example:", "--config-schema"})
      EXPECT_NE(help.find(part), std::string::npos) << command;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
  // An adapter's reference is the model that it adapts, and some losses have none.
  for (const char* without : {"model.lora_rank=4", "preference.loss=simpo"})
    EXPECT_EQ(run("dpo", std::string("--dry-run ") + without).output.find("frozen model"),
              std::string::npos)
        << without;
}

}  // namespace
}  // namespace rl
