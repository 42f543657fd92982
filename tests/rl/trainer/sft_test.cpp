// Whole runs of `starling-rl sft`.
#include <csignal>
#include <future>
#include <thread>

#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class SftTest : public TrainerTest {
 protected:
  std::string sft_command(const std::string& arguments, const std::string& run = "run") const {
    return STARLING_BIN_DIR
           "/starling-rl sft data.dataset_name=toy data.toy.letters=4 data.toy.length=2 "
           "data.toy.rows=64 data.train_batch_size=16 data.max_length=32 optim.lr=1e-2 "
           "model.path=" +
           model() +
           " trainer.logger=[console,file] trainer.default_local_dir=" + (folder_ / run).string() +
           " " + arguments;
  }
  Outcome sft(const std::string& arguments, const std::string& run = "run") const {
    return shell("exec " + sft_command(arguments, run));
  }

  // One metric of every step that has it.
  std::vector<double> metric(const std::string& name, const std::string& run = "run") const {
    std::vector<double> values;
    for (const std::string& line : numbers(folder_ / run)) {
      const auto json = nlohmann::json::parse(line);
      if (json["data"].contains(name)) values.push_back(json["data"][name].get<double>());
    }
    return values;
  }

  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
};

TEST_F(SftTest, TwentyStepsLowerTheLossAndTheValidationLoss) {
  const Outcome run = sft("trainer.total_training_steps=20 trainer.test_freq=5");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<double> loss = metric("train/loss");
  ASSERT_EQ(loss.size(), 20u) << run.output;
  EXPECT_GT(loss.front(), 3.0);
  EXPECT_LT(loss.back(), 1.5);
  const std::vector<double> validation = metric("val/loss");
  ASSERT_EQ(validation.size(), 4u);
  EXPECT_LT(validation.back(), validation.front() - 0.3);
  EXPECT_EQ(metric("train/lr").back(), 1e-2);
  EXPECT_EQ(metric("train/global_tokens").front(),
            16 * 13.0);  // "<user>sort ab<end><assistant>" and "ab<end>": nothing is padded
  EXPECT_TRUE(fs::exists(folder_ / "run" / "global_step_20" / "huggingface" / "tokenizer.json"));
}

TEST_F(SftTest, EpochsGoOverAllRowsAndScheduleAndSavesFollowThem) {
  const Outcome run =
      sft("trainer.total_epochs=2 trainer.save_freq=after_each_epoch "
          "optim.lr_scheduler_type=cosine optim.lr_warmup_steps=2");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<double> rates = metric("train/lr");
  ASSERT_EQ(rates.size(), 8u);  // 64 rows, 16 a step, twice
  EXPECT_LT(rates[0], rates[1]);
  EXPECT_LT(rates[7], rates[3]);
  EXPECT_EQ(metric("training/epoch"), (std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "global_step_4"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "global_step_8"));
}

TEST_F(SftTest, TwoWorkersTrainAsOneDoes) {
  ASSERT_EQ(sft("trainer.total_training_steps=4 trainer.test_freq=4", "one").code, 0);
  const Outcome run =
      sft("trainer.total_training_steps=4 trainer.test_freq=4 trainer.n_gpus_per_node=2 "
          "data.max_token_len_per_gpu=30",
          "two");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const char* name : {"train/loss", "train/grad_norm", "val/loss"}) {
    const std::vector<double> one = metric(name, "one");
    const std::vector<double> two = metric(name, "two");
    ASSERT_EQ(one.size(), two.size()) << name;
    for (std::size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(one[i], two[i], 1e-3 * std::abs(one[i])) << name << " of step " << i + 1;
  }
  EXPECT_NEAR(metric("train/grad_norm", "one")[0], metric("train/grad_norm", "two")[0],
              1e-6 * metric("train/grad_norm", "one")[0]);
}

TEST_F(SftTest, ARunThatIsKilledContinuesWithTheSameNumbers) {
  ASSERT_EQ(sft("trainer.total_training_steps=40 trainer.save_freq=3", "whole").code, 0);
  const pid_t pid =
      start(sft_command("trainer.total_training_steps=40 trainer.save_freq=3", "cut"));
  ASSERT_TRUE(comes_while_it_runs(pid, [&] {
    return fs::exists(folder_ / "cut" / "global_step_9");
  })) << read(folder_ / "output");
  ::kill(pid, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status)) << read(folder_ / "output");
  EXPECT_TRUE(all_end()) << processes();
  ASSERT_TRUE(latest_whole_checkpoint(folder_ / "cut").value_or(std::nullopt).has_value());
  const Outcome rest = sft("trainer.total_training_steps=40 trainer.save_freq=3", "cut");
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("continuing after step"), std::string::npos) << rest.output;
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "cut"));
  EXPECT_EQ(read(folder_ / "whole" / "global_step_40" / "huggingface" / "model.safetensors"),
            read(folder_ / "cut" / "global_step_40" / "huggingface" / "model.safetensors"));
}

TEST_F(SftTest, KilledWhileACheckpointIsWrittenARunGoesOnWithTheSameNumbers) {
  const std::string options =
      "trainer.total_training_steps=30 trainer.save_freq=1 trainer.max_ckpt_to_keep=2";
  ASSERT_EQ(sft(options, "whole").code, 0);
  ASSERT_NO_FATAL_FAILURE(kill_while_saving(sft_command(options, "killed"), folder_ / "killed"));
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "killed"));
  for (const char* file :
       {"huggingface/model.safetensors", "optimizer.safetensors", "trainer.json"}) {
    EXPECT_EQ(read(folder_ / "whole" / "global_step_30" / file),
              read(folder_ / "killed" / "global_step_30" / file))
        << file;
  }
  EXPECT_TRUE(verify_checkpoint(folder_ / "killed" / "global_step_30").ok());
}

TEST_F(SftTest, CheckpointsDuringTrainingAreThoseThatItWaitsFor) {
  const std::string options = "trainer.total_training_steps=6 trainer.save_freq=2 ";
  ASSERT_EQ(sft(options, "async").code, 0);
  ASSERT_EQ(sft(options + "trainer.async_save=false", "waits").code, 0);
  EXPECT_EQ(numbers(folder_ / "async"), numbers(folder_ / "waits"));
  for (const char* file : {"huggingface/model.safetensors", "huggingface/tokenizer.json",
                           "optimizer.safetensors", "optimizer.json", "trainer.json"}) {
    for (const char* step : {"global_step_2", "global_step_4", "global_step_6"}) {
      const std::string bytes = read(folder_ / "async" / step / file);
      EXPECT_FALSE(bytes.empty()) << step << " " << file;
      EXPECT_EQ(bytes, read(folder_ / "waits" / step / file)) << step << " " << file;
    }
  }
  for (const char* run : {"async", "waits"})  // their manifests differ by config.yaml alone
    EXPECT_TRUE(verify_checkpoint(folder_ / run / "global_step_6").ok()) << run;
  EXPECT_NE(read(folder_ / "async" / "metrics.jsonl").find("timing_s/save_checkpoint"),
            std::string::npos);
}

TEST_F(SftTest, ACheckpointThatCannotBeWrittenIsToldAndTrainingGoesOn) {
  fs::create_directories(folder_ / "run" /
                         "latest_checkpointed_iteration.txt");  // a folder in the place of the file
  const Outcome run = sft("trainer.total_training_steps=4 trainer.save_freq=2");
  EXPECT_EQ(run.code, 1) << run.output;
  for (const char* told : {"checkpoint of step 2: ", "training continues",
                           "error: invalid argument: checkpoint of step 4: "})
    EXPECT_NE(run.output.find(told), std::string::npos) << told << "\n" << run.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 4u);
}

TEST_F(SftTest, AnInterruptedRunIsSavedAndGoesOnWithTheSameNumbers) {
  const std::string options = "trainer.total_training_steps=60 trainer.save_freq=1000";
  ASSERT_EQ(sft(options, "whole").code, 0);
  const std::string told = interrupt_behind_step_three(
      sft_command(options + " trainer.resume_mode=disable", "cut"), folder_ / "cut");
  EXPECT_NE(told.find("of 60; the same command with trainer.resume_mode=auto continues from there"),
            std::string::npos)
      << told;
  const Outcome rest = sft(options, "cut");
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("continuing after step"), std::string::npos) << rest.output;
  EXPECT_EQ(numbers(folder_ / "whole"), numbers(folder_ / "cut"));
}

TEST_F(SftTest, TwoRunsDoNotWriteToOneFolder) {
  const pid_t first = start(
      sft_command("trainer.total_training_steps=1000000 trainer.save_freq=1000000 optim.lr=1e-3"));
  ASSERT_TRUE(wait_for_step(first, folder_ / "run", 3)) << read(folder_ / "output");
  const Outcome second = sft("trainer.total_training_steps=4");
  EXPECT_EQ(second.code, 1) << second.output;
  EXPECT_NE(second.output.find((folder_ / "run").string() + ": another run writes there (pid " +
                               std::to_string(first) +
                               "); set trainer.default_local_dir to another folder"),
            std::string::npos)
      << second.output;
  // The first goes on as if nothing had been, until it is told to end.
  const std::size_t so_far = numbers(folder_ / "run").size();
  ASSERT_TRUE(wait_for_step(first, folder_ / "run", static_cast<int>(so_far) + 1))
      << read(folder_ / "output");
  ::kill(first, SIGINT);
  int status = 0;
  EXPECT_EQ(::waitpid(first, &status, 0), first);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << read(folder_ / "output");
  const auto saved = latest_whole_checkpoint(folder_ / "run").value_or(std::nullopt);
  ASSERT_TRUE(saved.has_value()) << read(folder_ / "output");
  EXPECT_EQ(checkpoint_step(*saved), static_cast<std::int64_t>(numbers(folder_ / "run").size()));
  EXPECT_TRUE(verify_checkpoint(*saved).ok());
}

// Warm-up of two steps, then level for half of what is left, then down in a line to a tenth.
TEST_F(SftTest, WarmUpStableAndDecayFollowTheirKeys) {
  const Outcome run =
      sft("trainer.total_training_steps=10 optim.lr_scheduler_type=wsd optim.lr_warmup_steps=2 "
          "optim.lr_decay_ratio=0.5 optim.min_lr_ratio=0.1");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<double> rates = metric("train/lr");
  const std::vector<double> shares{0.5, 1, 1, 1, 1, 1, 1, 0.775, 0.55, 0.325};
  ASSERT_EQ(rates.size(), shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i)
    EXPECT_NEAR(rates[i], 1e-2 * shares[i], 1e-12) << "step " << i + 1;
}

// At a rate of 0 no validation is better than the first.
TEST_F(SftTest, TheBestCheckpointStaysAndTrainingEndsEarly) {
  const std::string options =
      "optim.lr=0 trainer.val_before_train=true trainer.test_freq=1 trainer.save_freq=1 "
      "trainer.max_ckpt_to_keep=1 trainer.save_best=val/loss trainer.early_stop.metric=val/loss "
      "trainer.early_stop.patience=3 ";
  const Outcome run = sft(options + "trainer.total_training_steps=200");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("stopping after step 4: val/loss has not improved in 3 measurements"),
            std::string::npos)
      << run.output;
  const std::vector<std::string> lines = numbers(folder_ / "run");
  ASSERT_EQ(lines.size(), 5u);
  const auto before = nlohmann::json::parse(lines.front());
  EXPECT_EQ(before["step"], 0);
  EXPECT_FALSE(before["data"].contains("train/loss"));
  EXPECT_EQ(metric("val/loss"), std::vector<double>(5, before["data"]["val/loss"].get<double>()));
  EXPECT_EQ(best_checkpoint_step(folder_ / "run"), 1);
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_1").ok());
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_4").ok());
  EXPECT_FALSE(fs::exists(folder_ / "run" / "global_step_2"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "global_step_3")) << "no step has followed the last";

  // A run that goes on remembers both, and does not validate before its first step again.
  ASSERT_EQ(sft(options + "trainer.total_training_steps=2", "halves").code, 0);
  const Outcome rest = sft(options + "trainer.total_training_steps=200", "halves");
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("stopping after step 4: "), std::string::npos) << rest.output;
  EXPECT_EQ(numbers(folder_ / "halves"), lines);
  EXPECT_EQ(best_checkpoint_step(folder_ / "halves"), 1);

  // One that was stopped has nothing left to do, unless it is to be more patient. What was the best
  // by another measure is not to be beaten.
  const Outcome again = sft(options + "trainer.total_training_steps=200", "halves");
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_NE(again.output.find(
                "nothing to do: stopped early after step 4 of 200: val/loss has not improved"),
            std::string::npos)
      << again.output;
  EXPECT_EQ(numbers(folder_ / "halves"), lines);
  const Outcome more = sft(options +
                               "trainer.total_training_steps=200 trainer.early_stop.patience=5 "
                               "trainer.save_best_mode=max",
                           "halves");
  ASSERT_EQ(more.code, 0) << more.output;
  EXPECT_NE(more.output.find("stopping after step 6: "), std::string::npos) << more.output;
  EXPECT_EQ(best_checkpoint_step(folder_ / "halves"), 5);
}

TEST_F(SftTest, TheSmallerLossIsTheBetterOne) {
  const std::string options =
      "trainer.total_training_steps=15 trainer.test_freq=5 trainer.max_ckpt_to_keep=1 "
      "trainer.save_best=val/loss ";
  ASSERT_EQ(sft(options, "least").code, 0);
  ASSERT_EQ(sft(options + "trainer.save_best_mode=max", "most").code, 0);
  const std::vector<double> losses = metric("val/loss", "least");
  ASSERT_EQ(losses.size(), 3u);
  const auto step_of = [&](std::vector<double>::const_iterator loss) {
    return 5 * (loss - losses.begin() + 1);
  };
  EXPECT_EQ(best_checkpoint_step(folder_ / "least"),
            step_of(std::min_element(losses.begin(), losses.end())));
  const std::int64_t most = step_of(std::max_element(losses.begin(), losses.end()));
  EXPECT_EQ(best_checkpoint_step(folder_ / "most"), most);
  EXPECT_TRUE(verify_checkpoint(folder_ / "most" / ("global_step_" + std::to_string(most))).ok())
      << "saved, though trainer.save_freq asks for none, and kept";
}

TEST_F(SftTest, AnAbsurdLearningRateEndsTheRun) {
  const Outcome run = sft("optim.lr=1e30 trainer.total_training_steps=60");
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find("the model had no finite gradient in 10 consecutive steps"),
            std::string::npos)
      << run.output;
  EXPECT_LT(numbers(folder_ / "run").size(), 20u);
}

TEST_F(SftTest, AnAdapterIsTrainedSavedAndResumed) {
  const Outcome first = sft("model.lora_rank=8 trainer.total_training_steps=20");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_LT(metric("train/loss").back(), metric("train/loss").front() - 0.3);
  EXPECT_TRUE(
      fs::exists(folder_ / "run" / "global_step_20" / "lora_adapter" / "adapter_config.json"));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "global_step_20" / "huggingface"));
  const Outcome more = sft("model.lora_rank=8 trainer.total_training_steps=25");
  ASSERT_EQ(more.code, 0) << more.output;
  EXPECT_LT(metric("train/loss").back(), metric("train/loss")[19] + 0.2);
  const Outcome exported =
      shell(STARLING_BIN_DIR "/starling-rl export --checkpoint " + (folder_ / "run").string() +
            " --out " + (folder_ / "merged").string());
  EXPECT_EQ(exported.code, 0) << exported.output;
  EXPECT_TRUE(fs::exists(folder_ / "merged" / "config.json"));
}

TEST_F(SftTest, ConversationsFromAFileAreLearned) {
  const std::string file = write(
      "turns.jsonl",
      R"({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "ba"}, {"role": "user", "content": "cd"}, {"role": "assistant", "content": "dc"}]})"
      "\n"
      R"({"messages": [{"role": "user", "content": "ac"}, {"role": "assistant", "content": "ca"}]})"
      "\n");
  const Outcome run = sft("data.train_files=" + file + " data.val_files=" + file +
                          " data.train_batch_size=2 trainer.total_training_steps=30");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(metric("train/learned_tokens").front(), 9);
  EXPECT_LT(metric("val/loss").back(), 0.5);
}

// By the teacher's distributions alone.
TEST_F(SftTest, AStudentComesCloserToItsTeacher) {
  ASSERT_EQ(sft("trainer.total_training_steps=100", "teacher").code, 0);
  const std::string teacher = (folder_ / "teacher" / "global_step_100" / "huggingface").string();
  const Outcome run =
      sft("trainer.total_training_steps=30 distillation.weight=1.0 distillation.temperature=2 "
          "distillation.topk=4 distillation.teacher.path=" +
          teacher);
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_LT(metric("train/kl").back(), 0.3 * metric("train/kl").front());
  EXPECT_TRUE(std::isfinite(metric("val/kl").back()));
  const Outcome dry = sft("--dry-run distillation.teacher.path=" + teacher);
  EXPECT_EQ(dry.code, 0) << dry.output;
  EXPECT_NE(dry.output.find("frozen model"), std::string::npos) << dry.output;
  const Outcome wrong = sft("distillation.weight=2 distillation.teacher.path=" + teacher);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.output.find("distillation.weight: must be in [0, 1]"), std::string::npos)
      << wrong.output;
}

TEST_F(SftTest, WrongInputIsAnErrorBeforeAnythingStarts) {
  const std::string unanswered =
      write("unanswered.jsonl", R"({"messages": [{"role": "user", "content": "a"}]})"
                                "\n");
  const std::string answered = write("answered.jsonl", R"({"prompt": "a", "response": "b"})"
                                                       "\n");
  const std::string empty = write("empty.jsonl", "");
  struct Case {
    std::string arguments;
    const char* told;
  };
  for (const Case& wrong :
       {Case{"data.train_files=" + unanswered, "unanswered.jsonl:1: "},
        Case{"data.train_files=" + empty, "empty.jsonl"},
        Case{"data.max_length=3", "toy:1: the sequence has"},
        Case{"data.train_batch_size=1000", "data.train_batch_size"},
        Case{"model.path=/no/such", "/no/such"}, Case{"model.pth=x", "model.path"},
        Case{"actor_rollout_ref.actor.optim.lr=1", "unknown key"}, Case{"optim.lr=-1", "optim.lr"},
        Case{"trainer.save_freq=often", "an integer or after_each_epoch"},
        Case{"data.custom_cls.path=x.py", "data.custom_cls.path"},
        Case{"trainer.early_stop.metric=val/loss", "trainer.test_freq"},
        Case{"trainer.save_best=train/loss", "trainer.save_freq"},
        Case{"trainer.save_best=val/loss trainer.test_freq=1 data.dataset_name=null "
             "data.train_batch_size=1 data.train_files=" +
                 answered,
             "nothing to validate on"}}) {
    const Outcome run = sft(wrong.arguments);
    EXPECT_EQ(run.code, 1) << wrong.arguments << "\n" << run.output;
    EXPECT_NE(run.output.find("error: "), std::string::npos) << run.output;
    EXPECT_NE(run.output.find(wrong.told), std::string::npos) << wrong.arguments << "\n"
                                                              << run.output;
  }
}

TEST_F(SftTest, AConfigurationIsJudgedByTheKeysOfTheCommand) {
  const Outcome check = shell(
      STARLING_BIN_DIR
      "/starling sft --check model.path=x optim.lr=1e-5 engine.strategy=fsdp data.pad_mode=right");
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_NE(check.output.find("optim.lr = 1e-05: learning rate"), std::string::npos)
      << check.output;
  EXPECT_NE(check.output.find("4 keys: 2 used, 2 without effect, 0 refused"), std::string::npos)
      << check.output;
  const Outcome other = shell(STARLING_BIN_DIR "/starling train --check optim.lr=1e-5");
  EXPECT_EQ(other.code, 1) << other.output;
  EXPECT_NE(other.output.find("`starling sft` takes it"), std::string::npos) << other.output;
  const Outcome dry = sft("--dry-run");
  EXPECT_EQ(dry.code, 0) << dry.output;
  EXPECT_NE(dry.output.find("4 an epoch, 16 in all"), std::string::npos) << dry.output;
  const std::string turns = write("shown.jsonl", R"({"prompt": "ab", "response": "cd"})"
                                                 "\n"
                                                 R"({"prompt": "a", "response": "b"})");
  const Outcome shown =
      sft("--dry-run data.val_files=null data.train_batch_size=2 data.train_files=" + turns);
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_NE(shown.output.find("shown.jsonl:1), as the model reads it; the text after > is "
                              "learned, 3 of 5 tokens:\n  | ab\n  > cd<"),
            std::string::npos)
      << shown.output;
  EXPECT_NE(
      shell(STARLING_BIN_DIR "/starling sft --config-print optim.lr=0.5").output.find("lr: 0.5"),
      std::string::npos);
}

}  // namespace
}  // namespace rl
