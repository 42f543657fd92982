// Whole runs of `starling-rl pipeline`.
#include <cmath>

#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class PipelineTest : public TrainerTest {
 protected:
  std::string write(const std::string& text) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "toy.yaml") << text;
    return (folder_ / "toy.yaml").string();
  }

  // Supervised steps, then GRPO from what they made.
  std::string sft_then_train(const std::string& train_keys = "") const {
    return "folder: " + (folder_ / "runs").string() +
           "\nstages:\n"
           "  sft:\n"
           "    data: {dataset_name: toy, toy: {letters: 4, length: 2, rows: 64}, "
           "train_batch_size: 16, max_length: 32}\n"
           "    optim.lr: 1e-2\n"
           "    trainer: {total_training_steps: 40, logger: [console, file]}\n"
           "    model.path: " +
           model() +
           "\n"
           "  rl:\n"
           "    command: train\n"
           "    data: {dataset_name: toy, toy: {letters: 4, length: 2}, train_batch_size: 4, "
           "max_prompt_length: 32, max_response_length: 4}\n"
           "    actor_rollout_ref: {rollout.n: 4, actor.optim.lr: 1e-4}\n"
           "    actor_rollout_ref.model.path: ${stages.sft.model}\n"
           "    trainer: {total_training_steps: 2, save_freq: 1, logger: [console, file]}\n" +
           train_keys;
  }

  Outcome pipeline(const std::string& arguments) const {
    return shell("exec " STARLING_BIN_DIR "/starling-rl pipeline " + arguments);
  }

  double first_score() const {
    const std::vector<std::string> lines = numbers(folder_ / "runs" / "rl");
    return lines.empty()
               ? -1.0
               : nlohmann::json::parse(lines.front())["data"]["critic/score/mean"].get<double>();
  }
};

TEST_F(PipelineTest, TrainingGoesOnFromWhatTheSupervisedStageMade) {
  const Outcome run = pipeline(write(sft_then_train()));
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("stage 1 of 2: sft: done in"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("stage 2 of 2: rl: done in"), std::string::npos) << run.output;
  EXPECT_NE(read(folder_ / "runs" / "rl" / "config.yaml")
                .find((folder_ / "runs" / "sft" / "global_step_40" / "huggingface").string()),
            std::string::npos);
  EXPECT_GT(first_score(), 0.6) << run.output;  // a model at random scores 0.1
  // Nothing is left to do.
  const Outcome again = pipeline((folder_ / "toy.yaml").string());
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_NE(again.output.find("stage 1 of 2: sft: complete"), std::string::npos) << again.output;
  EXPECT_NE(again.output.find("stage 2 of 2: rl: complete"), std::string::npos) << again.output;
  EXPECT_EQ(numbers(folder_ / "runs" / "sft").size(), 40u);
}

TEST_F(PipelineTest, APrivateOneJoinsNoCluster) {
  const std::string file = write(sft_then_train());
  const Outcome run =
      shell("STARLING_ADDRESS=127.0.0.1:1 exec " STARLING_BIN_DIR "/starling-rl pipeline " + file +
            " --private --dry-run");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("the run has its own cluster"), std::string::npos) << run.output;
  const Outcome both = pipeline(file + " --private --address 127.0.0.1:1");
  EXPECT_NE(both.code, 0);
  EXPECT_NE(both.output.find("--address"), std::string::npos) << both.output;
}

TEST_F(PipelineTest, TheBestCheckpointOfAStageIsThereForTheNext) {
  std::string stages = sft_then_train();
  stages.replace(stages.find("sft.model}"), 10, "sft.best_model}");
  const std::string file = write(stages);
  const Outcome unknown = pipeline(file);
  EXPECT_EQ(unknown.code, 1) << unknown.output;
  EXPECT_NE(unknown.output.find("set trainer.save_best in stage sft"), std::string::npos)
      << unknown.output;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  // The largest loss is that of the first checkpoint.
  const Outcome run = pipeline(
      file +
      " sft.trainer.save_freq=10 sft.trainer.save_best=train/loss sft.trainer.save_best_mode=max");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "sft" / "global_step_40"));
  EXPECT_NE(read(folder_ / "runs" / "rl" / "config.yaml")
                .find((folder_ / "runs" / "sft" / "global_step_10" / "huggingface").string()),
            std::string::npos);
}

TEST_F(PipelineTest, WhatALaterStageLacksIsToldBeforeTheFirst) {
  Outcome run = pipeline(write(sft_then_train()) +
                         " rl.data.dataset_name=null rl.data.train_files=[/no/train.parquet]");
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(
      run.output.find("stage rl: data.train_files: /no/train.parquet: No such file or directory"),
      std::string::npos)
      << run.output;
  std::string stages = sft_then_train();
  stages.replace(stages.find("sft.model}"), 10, "sft.adapter}");
  run = pipeline(write(stages));
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("stage sft trains all weights: take ${stages.sft.model}"),
            std::string::npos)
      << run.output;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

// Whether or not its model is still to be made.
TEST_F(PipelineTest, WhatALaterStageCannotDoIsToldBeforeTheFirst) {
  struct Case {
    std::string keys;
    const char* told;
  };
  for (const Case& wrong :
       {Case{" rl.trainer.n_gpus_per_node=4096 rl.data.train_batch_size=4096 "
             "rl.actor_rollout_ref.actor.ppo_mini_batch_size=4096 rl.data.toy.rows=4096",
             "do not fit the nodes' memory"},
        Case{" rl.trainer.cpus_per_worker=4096", "trainer.cpus_per_worker=4096"},
        Case{" rl.trainer.nnodes=7 rl.actor_rollout_ref.actor.ppo_mini_batch_size=7 "
             "rl.data.train_batch_size=7",
             "trainer.nnodes=7, but the cluster has 1 node(s)"},
        Case{" rl.data.max_prompt_length=2", "data.max_prompt_length"}}) {
    for (const char* how : {"", " --dry-run"}) {
      const Outcome run = pipeline(write(sft_then_train()) + wrong.keys + " --private" + how);
      EXPECT_EQ(run.code, 1) << wrong.keys << how << run.output;
      EXPECT_NE(run.output.find(wrong.told), std::string::npos) << wrong.keys << run.output;
      EXPECT_NE(run.output.find("stage rl"), std::string::npos) << run.output;
      EXPECT_FALSE(fs::exists(folder_ / "runs")) << wrong.keys << how;
    }
  }
}

// What InstructGPT did: demonstrations, a reward model of pairs, reinforcement learning by that
// reward model.
TEST_F(PipelineTest, ARewardModelOfOneStageScoresTheNext) {
  const std::string toy = "dataset_name: toy, toy: {task: copy, letters: 4, length: 2, rows: 256}";
  const std::string file = write(
      "folder: " + (folder_ / "runs").string() +
      "\nstages:\n"
      "  sft: {data: {" +
      toy +
      ", train_batch_size: 16, max_length: 32}, optim.lr: 1e-2, trainer: {total_training_steps: "
      "20}}\n"
      "  rm: {data: {" +
      toy +
      ", train_batch_size: 16, max_length: 32}, optim.lr: 1e-3, trainer: {total_training_steps: "
      "40, logger: [file], test_freq: 40}, model.path: \"${stages.sft.model}\"}\n"
      "  rl:\n"
      "    command: train\n"
      "    data: {" +
      toy +
      ", train_batch_size: 8, max_prompt_length: 32, max_response_length: 4}\n"
      "    actor_rollout_ref: {rollout.n: 4, actor.optim.lr: 3e-4, model.path: "
      "\"${stages.sft.model}\"}\n"
      "    reward.reward_model: {enable: true, model_path: \"${stages.rm.model}\"}\n"
      "    trainer: {total_training_steps: 3, logger: [console, file]}\n");
  const Outcome run =
      pipeline(file + " sft.model.path=" + model() + " rl.trainer.total_training_steps=2");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("stage 3 of 3: rl: done in"), std::string::npos) << run.output;
  EXPECT_EQ(numbers(folder_ / "runs" / "rl").size(), 2u) << "an override goes before the file";
  EXPECT_NE(read(folder_ / "runs" / "rl" / "config.yaml")
                .find((folder_ / "runs" / "rm" / "global_step_40" / "huggingface").string()),
            std::string::npos);
  // Scores of a reward model are no shares of letters.
  const double score = first_score();
  EXPECT_NE(score * 16, std::round(score * 16)) << score;
}

TEST_F(PipelineTest, AnOverrideOfNoStageIsRefused) {
  const std::string file = write(sft_then_train());
  for (const auto& [text, told] : std::vector<std::pair<std::string, std::string>>{
           {"model.path=toy", "write STAGE.key=value; the stages are sft, rl"},
           {"~sft.optim.lr", "is set, not removed"},
           {"sft.optim.lrr=1", "sft.optim.lrr=1"}}) {
    const Outcome run = pipeline(file + " '" + text + "'");
    EXPECT_EQ(run.code, 1) << run.output;
    EXPECT_NE(run.output.find(told), std::string::npos) << run.output;
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
  }
}

TEST_F(PipelineTest, AStageThatFailsIsNamedAndTheNextRunGoesOnThere) {
  // A reward that cannot be loaded, which no dry run finds: only the second stage needs it.
  fs::create_directories(folder_);
  std::ofstream(folder_ / "reward.py") << "raise ValueError('not yet')\n";
  const std::string file = write(sft_then_train(
      "    reward.custom_reward_function.path: " + (folder_ / "reward.py").string() + "\n"));
  const Outcome failed = pipeline(file);
  EXPECT_EQ(failed.code, 1) << failed.output;
  EXPECT_NE(failed.output.find("stage rl (the same command continues from here)"),
            std::string::npos)
      << failed.output;
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "sft" / "stage.done"));
  EXPECT_FALSE(fs::exists(folder_ / "runs" / "rl" / "stage.done"));
  std::ofstream(folder_ / "reward.py")
      << "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return "
         "1.0 if solution_str == ground_truth else 0.0\n";
  const Outcome rest = pipeline(file);
  EXPECT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("stage 1 of 2: sft: complete"), std::string::npos) << rest.output;
  EXPECT_NE(rest.output.find("(continues)"), std::string::npos) << rest.output;
}

// A stage that has come to its end is complete, but the interrupt holds for those behind it.
TEST_F(PipelineTest, ASignalDuringAStagesLastStepsBeginsNoFurtherOne) {
  const pid_t pid = start(STARLING_BIN_DIR "/starling-rl pipeline " + write(sft_then_train()));
  ASSERT_TRUE(wait_for_step(pid, folder_ / "runs" / "sft", 40)) << read(folder_ / "output");
  ::kill(pid, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  const std::string told = read(folder_ / "output");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << told;
  EXPECT_NE(told.find("stage rl (the same command continues from here)"), std::string::npos)
      << told;
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "sft" / "stage.done")) << told;
  EXPECT_FALSE(fs::exists(folder_ / "runs" / "rl" / "metrics.jsonl")) << told;
  EXPECT_EQ(pipeline((folder_ / "toy.yaml").string()).code, 0);
}

TEST_F(PipelineTest, WhoKillsTheGroupKillsTheStage) {
  std::string slow = sft_then_train();
  slow.replace(slow.find("total_training_steps: 40"), 24, "total_training_steps: 100000");
  const pid_t pid = start("setsid " STARLING_BIN_DIR "/starling-rl pipeline " + write(slow));
  ASSERT_TRUE(wait_for_step(pid, folder_ / "runs" / "sft", 3)) << read(folder_ / "output");
  ::kill(-pid, SIGKILL);
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_TRUE(all_end()) << processes();
  EXPECT_FALSE(latest_whole_checkpoint(folder_ / "runs" / "sft").value_or(std::nullopt).has_value())
      << "it was killed, not asked to save its step";
}

// As `starling job stop` does it, to the group of processes: the stage hears of it once, and saves
// its step.
TEST_F(PipelineTest, ASignalLetsTheStageSaveItsStep) {
  std::string slow = sft_then_train();
  slow.replace(slow.find("total_training_steps: 40"), 24, "total_training_steps: 100000");
  const pid_t pid = start("setsid " STARLING_BIN_DIR "/starling-rl pipeline " + write(slow));
  ASSERT_TRUE(wait_for_step(pid, folder_ / "runs" / "sft", 3)) << read(folder_ / "output");
  ::kill(-pid, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  const std::string told = read(folder_ / "output");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << told;
  EXPECT_NE(told.find("of 100000; the same command continues from there"), std::string::npos)
      << told;
  EXPECT_TRUE(latest_whole_checkpoint(folder_ / "runs" / "sft").value_or(std::nullopt).has_value())
      << told;
}

TEST_F(PipelineTest, ADryRunSaysWhatWouldRunAndStartsNothing) {
  const Outcome dry = pipeline(write(sft_then_train()) + " --dry-run");
  EXPECT_EQ(dry.code, 0) << dry.output;
  EXPECT_NE(dry.output.find("stage 1 of 2: sft (starling sft): to be run"), std::string::npos)
      << dry.output;
  EXPECT_NE(dry.output.find("4 an epoch, 40 in all"), std::string::npos) << dry.output;
  EXPECT_NE(dry.output.find("actor_rollout_ref.model.path: the model of stage sft"),
            std::string::npos)
      << dry.output;
  EXPECT_NE(dry.output.find("judged with actor_rollout_ref.model.path: " + model()),
            std::string::npos)
      << dry.output;
  EXPECT_NE(dry.output.find("policy (generates and trains) x 1: "), std::string::npos)
      << dry.output;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

TEST_F(PipelineTest, ACompleteStageIsNotRunWithOtherKeys) {
  ASSERT_EQ(pipeline(write(sft_then_train())).code, 0);
  std::string changed = sft_then_train();
  changed.replace(changed.find("1e-2"), 4, "1e-3");
  const Outcome run = pipeline(write(changed));
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("stage sft was completed with other keys"), std::string::npos)
      << run.output;
  EXPECT_NE(run.output.find("remove " + (folder_ / "runs" / "sft").string()), std::string::npos)
      << run.output;
}

// What follows would be made from the checkpoint before it.
TEST_F(PipelineTest, AStageWhoseLastCheckpointIsDamagedIsNotTakenFromTheOneBefore) {
  const std::string file = write(sft_then_train()) + " sft.trainer.save_freq=20";
  ASSERT_EQ(pipeline(file).code, 0);
  const fs::path sft = folder_ / "runs" / "sft";
  fs::resize_file(sft / "global_step_40" / "huggingface" / "model.safetensors", 100);
  fs::remove(folder_ / "runs" / "rl" / "stage.done");
  const Outcome damaged = pipeline(file);
  EXPECT_EQ(damaged.code, 1) << damaged.output;
  const std::string told =
      "stage sft: its last checkpoint is damaged or gone (remove " + (sft / "stage.done").string();
  EXPECT_NE(damaged.output.find(told), std::string::npos) << damaged.output;
  fs::remove_all(sft / "global_step_40");
  const Outcome gone = pipeline(file);
  EXPECT_EQ(gone.code, 1) << gone.output;
  EXPECT_NE(gone.output.find(told), std::string::npos) << gone.output;
  fs::remove(sft / "stage.done");
  const Outcome mended = pipeline(file);
  EXPECT_EQ(mended.code, 0) << mended.output;
}

TEST_F(PipelineTest, MistakesAreToldBeforeAnyStageRuns) {
  struct Case {
    std::string text;
    const char* told;
  };
  for (const Case& wrong :
       {Case{sft_then_train("    data.trian_files: x\n"), "toy.yaml:14: stage rl: unknown key"},
        Case{"stages:\n  rl: {command: trian}\n", "no command"},
        Case{"stages:\n  a:\n    command: sft\n    model.path: ${stages.b.model}\n",
             "no stage of that name comes before this one"},
        Case{sft_then_train("    trainer.project_name: ${stages.sft.weights}\n"),
             "a stage has model, adapter, checkpoint, each also with best_ before it, and folder"},
        Case{"folder: x\n", "no stages"},
        Case{"stages:\n  sft:\n    config: none.yaml\n", "none.yaml"},
        Case{"stage:\n  sft: {}\n", "a pipeline has folder and stages"},
        Case{sft_then_train("    trainer.default_local_dir: " +
                            (folder_ / "runs" / "x" / ".." / "sft").string() + "\n"),
             "is that of stage sft"},
        Case{"stages: 5\n", "stages must be a dictionary of stages"},
        Case{sft_then_train("    optim.lr: 1\n"), "`starling sft` takes it"}}) {
    const Outcome run = pipeline(write(wrong.text));
    EXPECT_EQ(run.code, 1) << run.output;
    EXPECT_NE(run.output.find(wrong.told), std::string::npos) << wrong.text << run.output;
    EXPECT_FALSE(fs::exists(folder_ / "runs")) << run.output;
  }
  EXPECT_EQ(pipeline("").code, 2);
}

TEST_F(PipelineTest, AConfigFileGoesBeforeTheStagesOwnKeys) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "base.yaml")
      << "data: {dataset_name: toy, max_length: 32, train_batch_size: 8}\noptim.lr: "
         "1e-2\ntrainer.total_training_steps: 1\n";
  const Outcome run = pipeline(write("folder: " + (folder_ / "runs").string() +
                                     "\nstages:\n  first:\n    command: sft\n    config: "
                                     "base.yaml\n    optim.lr: 0.5\n    model.path: " +
                                     model() + "\n"));
  ASSERT_EQ(run.code, 0) << run.output;
  const std::string used = read(folder_ / "runs" / "first" / "config.yaml");
  EXPECT_NE(used.find("lr: 0.5"), std::string::npos) << used;
  EXPECT_NE(used.find("train_batch_size: 8"), std::string::npos) << used;
}

}  // namespace
}  // namespace rl
