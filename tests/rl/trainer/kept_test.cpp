// Files that a run keeps: weights and metrics, unless it is told to keep none; and the run that it
// goes on from.
#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class KeptTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    fs::create_directories(folder_);
  }

  // A command as users give it, in its own folder: what is kept lies where the defaults say.
  Outcome in_folder(const std::string& arguments) const {
    return shell("cd " + folder_.string() + " && exec " STARLING_BIN_DIR "/starling-rl " +
                 arguments);
  }

  std::string train_arguments() const {
    return "train data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
           "data.train_batch_size=4 data.max_prompt_length=32 data.max_response_length=4 "
           "actor_rollout_ref.rollout.n=4 actor_rollout_ref.model.path=" +
           model() + " ";
  }
  static std::string stage_arguments(const std::string& command, const std::string& model) {
    return command +
           " data.dataset_name=toy data.toy.letters=4 data.toy.length=2 data.toy.rows=64 "
           "data.train_batch_size=16 data.max_length=32 model.path=" +
           model + " ";
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

  // A reward that fails from its call `fails` on, as long as there is the file that breaks it.
  std::string failing_reward(int fails) const {
    write("broken", "");
    return "reward.retries=0 reward.num_workers=1 reward.on_failure=error "
           "custom_reward_function.path=" +
           write("reward.py",
                 "import os\n"
                 "calls = 0\n"
                 "def compute_score(data_source, solution_str, ground_truth, extra_info):\n"
                 "    global calls\n"
                 "    calls += 1\n"
                 "    if calls > " +
                     std::to_string(fails) + " and os.path.exists(\"" +
                     (folder_ / "broken").string() +
                     "\"): raise ValueError(\"broken\")\n"
                     "    return float(solution_str.startswith(\"a\")) + len(solution_str)\n") +
           " ";
  }

  // Another model of the same shape.
  std::string other_model() const {
    const fs::path path = folder_ / "other";
    EXPECT_TRUE(
        make_toy_model(path, {.layers = 1, .hidden_size = 32, .intermediate_size = 32, .seed = 7})
            .ok());
    return path.string();
  }
};

void expect_told(const std::string& output, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts)
    EXPECT_NE(output.find(part), std::string::npos) << part << "\n" << output;
}

TEST_F(KeptTest, EveryCommandKeepsItsLastStepAndItsMetricsByDefault) {
  for (const std::string command : {"train", "sft", "dpo", "kto", "rm"}) {
    const Outcome run =
        in_folder((command == "train" ? train_arguments() : stage_arguments(command, model())) +
                  "trainer.total_training_steps=2");
    ASSERT_EQ(run.code, 0) << run.output;
    const fs::path kept =
        folder_ / "checkpoints/starling" / (command == "train" ? "grpo" : command);
    EXPECT_EQ(numbers(kept).size(), 2u) << run.output;
    const fs::path checkpoint = kept / "global_step_2";
    EXPECT_TRUE(verify_checkpoint(checkpoint).ok()) << command;
    EXPECT_TRUE(fs::exists(checkpoint / (command == "train" ? "actor" : ".") /
                           "huggingface/model.safetensors"))
        << command;
    EXPECT_FALSE(fs::exists(kept / "global_step_1")) << command;
    expect_told(run.output,
                {"checkpoints: at the end only (trainer.save_freq=-1), in " + kept.string(),
                 "metrics:    ", "checkpoint: "});
  }
}

TEST_F(KeptTest, ARunThatIsToKeepNothingSaysSoAtItsStartAndEnd) {
  for (const std::string& arguments : {train_arguments(), stage_arguments("sft", model())}) {
    const Outcome run =
        in_folder(arguments +
                  "trainer.total_training_steps=2 trainer.save_freq=0 trainer.logger=[console] "
                  "trainer.default_local_dir=" +
                  (folder_ / "none").string());
    ASSERT_EQ(run.code, 0) << run.output;
    expect_told(run.output, {"checkpoints: none: trainer.save_freq=0 keeps no weights",
                             "\ncheckpoint: none: trainer.save_freq=0 keeps no weights",
                             "metrics: none kept: trainer.logger names no file",
                             "\nmetrics:    none kept: trainer.logger names no file"});
    EXPECT_LT(run.output.find("checkpoints: none"), run.output.find("step:1/2")) << run.output;
    EXPECT_FALSE(latest_whole_checkpoint(folder_ / "none").value_or(std::nullopt).has_value());
    EXPECT_FALSE(fs::exists(folder_ / "none/metrics.jsonl"));
    fs::remove_all(folder_ / "none");
  }
}

TEST_F(KeptTest, ADryRunSaysWhatIsKeptAndTheRateThatItTrainsAt) {
  const Outcome rl = in_folder(train_arguments() + "--dry-run");
  EXPECT_EQ(rl.code, 0) << rl.output;
  expect_told(rl.output, {"checkpoints at the end only (trainer.save_freq=-1), in checkpoints/",
                          "policy 1e-06, constant (from the defaults)"});
  for (const auto& [command, rate] :
       {std::pair<std::string, std::string>{"sft", "1e-05"}, {"rm", "1e-05"}, {"dpo", "1e-06"}}) {
    const Outcome dry = in_folder(stage_arguments(command, model()) + "--dry-run");
    EXPECT_EQ(dry.code, 0) << dry.output;
    expect_told(dry.output, {"checkpoints at the end only (trainer.save_freq=-1), in checkpoints/",
                             "learning rate:\n  " + rate + ", constant (from the defaults)"});
  }
  const Outcome set =
      in_folder(stage_arguments("sft", model()) +
                "--dry-run trainer.save_freq=0 optim.lr=2e-4 optim.lr_scheduler_type=cosine "
                "optim.lr_warmup_steps=2 trainer.total_training_steps=9");
  expect_told(set.output, {"checkpoints none: trainer.save_freq=0 keeps no weights",
                           "0.0002, after a warm-up of 2 step(s), cosine to 0 at step 9 (from the "
                           "command line)"});
  const Outcome adapter =
      in_folder(stage_arguments("dpo", model()) + "--dry-run model.lora_rank=4");
  expect_told(adapter.output, {"  1e-05, constant", "ten times the default of 1e-06"});
  EXPECT_FALSE(fs::exists(folder_ / "checkpoints"));
}

TEST_F(KeptTest, AnInterruptedRunKeepsItsStepByDefault) {
  const std::string options = " trainer.total_training_steps=100000 trainer.save_freq=-1";
  const std::string told = interrupt_behind_step_three(train_command(options), folder_ / "run");
  expect_told(told, {"the same command continues from there", "checkpoint: "});
  const auto saved = latest_whole_checkpoint(folder_ / "run").value_or(std::nullopt);
  ASSERT_TRUE(saved.has_value()) << told;
  EXPECT_EQ(checkpoint_step(*saved), static_cast<std::int64_t>(numbers(folder_ / "run").size()));
}

TEST_F(KeptTest, AStepThatFailsLeavesThoseBeforeIt) {
  const std::string options = failing_reward(40) + "trainer.total_training_steps=5 ";
  const Outcome failed = train(
      options + "trainer.save_freq=-1 trainer.default_local_dir=" + (folder_ / "cut").string());
  EXPECT_EQ(failed.code, 1) << failed.output;
  expect_told(failed.output, {"ValueError: broken", "step 2 is kept in "});
  ASSERT_TRUE(verify_checkpoint(folder_ / "cut/global_step_2").ok()) << failed.output;
  fs::remove(folder_ / "broken");
  const Outcome whole = train(options + "trainer.default_local_dir=" + (folder_ / "all").string());
  ASSERT_EQ(whole.code, 0) << whole.output;
  const Outcome rest = train(
      options + "trainer.save_freq=-1 trainer.default_local_dir=" + (folder_ / "cut").string());
  ASSERT_EQ(rest.code, 0) << rest.output;
  expect_told(rest.output, {"continuing after step 2"});
  EXPECT_EQ(numbers(folder_ / "all"), numbers(folder_ / "cut"));
}

TEST_F(KeptTest, AValidationThatFailsLeavesTheStepsBeforeIt) {
  const Outcome failed =
      train(failing_reward(64) +
            "trainer.total_training_steps=4 trainer.test_freq=4 trainer.val_before_train=false "
            "data.val_max_samples=16 trainer.save_freq=-1");
  EXPECT_EQ(failed.code, 1) << failed.output;
  expect_told(failed.output, {"validation after step 4", "ValueError: broken"});
  EXPECT_TRUE(verify_checkpoint(folder_ / "run/global_step_4").ok()) << failed.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 4u);
}

// Data are read again in each epoch: a file that is damaged meanwhile ends the run.
TEST_F(KeptTest, DataThatEndAStageLeaveTheStepsBeforeIt) {
  std::string rows;
  for (int row = 0; row < 20'000; ++row) rows += "{\"prompt\": \"ab\", \"response\": \"ba\"}\n";
  const std::string file = write("rows.jsonl", rows);
  const fs::path run = folder_ / "checkpoints";
  const pid_t pid = start(STARLING_BIN_DIR "/starling-rl sft data.train_files=" + file +
                          " data.streaming=true data.shuffle=false data.train_batch_size=16 "
                          "data.max_length=32 trainer.total_training_steps=100000 model.path=" +
                          model() + " trainer.default_local_dir=" + run.string());
  ASSERT_TRUE(wait_for_step(pid, run, 3)) << read(folder_ / "output");
  {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged << std::string(rows.size(), 'x');
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  const std::string told = read(folder_ / "output");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << told;
  expect_told(told, {"is kept in "});
  const auto saved = latest_whole_checkpoint(run).value_or(std::nullopt);
  ASSERT_TRUE(saved.has_value()) << told;
  EXPECT_EQ(checkpoint_step(*saved), static_cast<std::int64_t>(numbers(run).size())) << told;
}

TEST_F(KeptTest, ARunIsNotContinuedWithAnotherModel) {
  const std::string other = other_model();
  const std::string keep = " trainer.save_freq=-1 trainer.total_training_steps=";
  ASSERT_EQ(train(keep + "2").code, 0);
  ASSERT_EQ(in_folder(stage_arguments("sft", model()) + keep + "2").code, 0);
  const Outcome rl = train(keep + "4 actor_rollout_ref.model.path=" + other);
  const Outcome sft = in_folder(stage_arguments("sft", other) + keep + "4");
  for (const auto& [run, key] :
       {std::pair(&rl, std::string("actor_rollout_ref.model.path")), {&sft, "model.path"}}) {
    EXPECT_EQ(run->code, 1) << run->output;
    expect_told(run->output,
                {"invalid argument", "global_step_2: of a run of the model " + model(),
                 ", and " + key + " is " + other, "set trainer.default_local_dir to another folder",
                 "trainer.resume_mode=disable"});
  }
  EXPECT_EQ(numbers(folder_ / "run").size(), 2u) << "what was there stays";
  for (const Outcome& dry : {train("--dry-run actor_rollout_ref.model.path=" + other),
                             in_folder(stage_arguments("sft", other) + "--dry-run")}) {
    EXPECT_EQ(dry.code, 1) << dry.output;
    expect_told(dry.output, {"global_step_2: of a run of the model " + model()});
  }
  const Outcome adapter = in_folder(stage_arguments("sft", model()) + "model.lora_rank=4");
  EXPECT_EQ(adapter.code, 1) << adapter.output;
  expect_told(adapter.output, {"of a run that trained all weights of " + model() +
                               ", and this one trains a LoRA adapter"});
  // The same weights elsewhere are the same model; other weights in the same place are another one.
  fs::rename(folder_ / "model", folder_ / "moved");
  const Outcome moved =
      train(keep + "3 actor_rollout_ref.model.path=" + (folder_ / "moved").string());
  EXPECT_EQ(moved.code, 0) << moved.output;
  expect_told(moved.output, {"continuing after step 2",
                             "actor_rollout_ref.model.path: " + (folder_ / "model").string() +
                                 " -> " + (folder_ / "moved").string()});
  fs::remove_all(folder_ / "moved");
  fs::rename(other, folder_ / "moved");
  const Outcome replaced =
      train(keep + "4 actor_rollout_ref.model.path=" + (folder_ / "moved").string());
  EXPECT_EQ(replaced.code, 1) << replaced.output;
  expect_told(replaced.output, {"as it was then, and actor_rollout_ref.model.path=" +
                                (folder_ / "moved").string() + " has other weights now"});
  const Outcome from_start =
      train(keep + "4 trainer.resume_mode=disable actor_rollout_ref.model.path=" +
            (folder_ / "moved").string());
  EXPECT_EQ(from_start.code, 0) << from_start.output;
}

TEST_F(KeptTest, AResumedRunSaysWhichKeysHaveChanged) {
  const std::string keep = " trainer.save_freq=-1 trainer.total_training_steps=";
  ASSERT_EQ(train(keep + "2").code, 0);
  const Outcome dry = train(keep + "3 actor_rollout_ref.actor.optim.lr=5e-4 --dry-run");
  EXPECT_EQ(dry.code, 0) << dry.output;
  expect_told(dry.output, {"continues from " + (folder_ / "run/global_step_2").string(),
                           "changed: actor_rollout_ref.actor.optim.lr: 0.001 -> 0.0005"});
  const Outcome rl = train(keep + "3 actor_rollout_ref.actor.optim.lr=5e-4");
  ASSERT_EQ(rl.code, 0) << rl.output;
  expect_told(rl.output,
              {"2 key(s) are not as they were when " + (folder_ / "run/global_step_2").string(),
               "actor_rollout_ref.actor.optim.lr: 0.001 -> 0.0005 (from the command line)",
               "trainer.total_training_steps: 2 -> 3 (from the command line)"});
  const Outcome forgets =
      train("trainer.total_training_steps=5 actor_rollout_ref.actor.optim.lr=5e-4");
  expect_told(forgets.output,
              {"global_step_3 (the 2 step(s) since are not kept: trainer.save_freq=0)"});
  const Outcome same = train(keep + "3 actor_rollout_ref.actor.optim.lr=5e-4");
  expect_told(same.output, {"nothing to do: 3 of 3 steps are done"});
  EXPECT_EQ(same.output.find("key(s) are not as they were"), std::string::npos) << same.output;

  ASSERT_EQ(in_folder(stage_arguments("sft", model()) + "optim.lr=1e-3" + keep + "2").code, 0);
  const Outcome sft = in_folder(stage_arguments("sft", model()) + keep + "3");
  ASSERT_EQ(sft.code, 0) << sft.output;
  expect_told(sft.output, {"optim.lr: 0.001 -> 1e-05 (from the defaults)"});
}

TEST_F(KeptTest, RuinedWeightsAreAnAlarm) {
  const std::string arguments = stage_arguments("sft", model()) +
                                "optim.lr=3 trainer.total_training_steps=12 trainer.test_freq=4 "
                                "trainer.val_before_train=true trainer.default_local_dir=";
  const Outcome warned = in_folder(arguments + (folder_ / "warned").string());
  EXPECT_EQ(warned.code, 0) << warned.output;
  expect_told(warned.output, {"the training loss has risen, and the weights may be ruined",
                              "the held-out loss has risen, and the weights may be ruined",
                              "lower optim.lr", "\nalarm:      step "});
  const std::string metrics = read(folder_ / "warned/metrics.jsonl");
  EXPECT_NE(metrics.find("\"alarms/train_loss_rise\":1"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\"alarms/val_loss_rise\":1"), std::string::npos) << metrics;
  const Outcome stopped =
      in_folder(arguments + (folder_ / "stopped").string() + " trainer.alarms.action=stop");
  EXPECT_EQ(stopped.code, 1) << stopped.output;
  expect_told(stopped.output, {"stopped by an alarm (trainer.alarms.action=stop): step "});
  const auto saved = latest_whole_checkpoint(folder_ / "stopped").value_or(std::nullopt);
  ASSERT_TRUE(saved.has_value()) << stopped.output;
  EXPECT_LT(checkpoint_step(*saved).value_or(12), 12);
  const Outcome silent =
      in_folder(arguments + (folder_ / "silent").string() + " trainer.alarms.action=none");
  EXPECT_EQ(silent.output.find("may be ruined"), std::string::npos) << silent.output;
  // A warm start's are its own.
  const Outcome warm = train("sft.steps=12 sft.lr=3 trainer.total_training_steps=1");
  expect_told(warm.output, {"sft step ", "lower sft.lr"});
}

TEST_F(KeptTest, APipelineIsToldBeforeItsFirstStageThatOneKeepsNothing) {
  const std::string file = write(
      "two.yaml", "folder: " + (folder_ / "runs").string() +
                      "\nstages:\n"
                      "  sft: {data: {dataset_name: toy, train_batch_size: 16, max_length: 32}, "
                      "model.path: " +
                      model() +
                      ", trainer: {total_training_steps: 2}}\n"
                      "  rl:\n"
                      "    command: train\n"
                      "    data: {dataset_name: toy, toy: {letters: 4, length: 2}, "
                      "train_batch_size: 4, max_prompt_length: 32, max_response_length: 4}\n"
                      "    actor_rollout_ref: {rollout.n: 4}\n"
                      "    actor_rollout_ref.model.path: ${stages.sft.model}\n"
                      "    trainer: {total_training_steps: 2}\n");
  for (const std::string never : {"0", "false"}) {
    const Outcome refused = in_folder("pipeline " + file + " sft.trainer.save_freq=" + never);
    EXPECT_EQ(refused.code, 1) << refused.output;
    if (never == "0")
      expect_told(refused.output, {"stage rl: actor_rollout_ref.model.path is the model of stage "
                                   "sft, which keeps none: set its trainer.save_freq to -1"});
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
  }
  const Outcome run = in_folder("pipeline " + file);
  ASSERT_EQ(run.code, 0) << run.output;
  for (const char* stage : {"sft", "rl"}) {
    EXPECT_TRUE(
        latest_whole_checkpoint(folder_ / "runs" / stage).value_or(std::nullopt).has_value())
        << stage;
    EXPECT_EQ(numbers(folder_ / "runs" / stage).size(), 2u) << stage;
  }
  EXPECT_TRUE(fs::exists(folder_ / "runs/rl/global_step_2/actor/huggingface/model.safetensors"));
}

}  // namespace
}  // namespace rl
