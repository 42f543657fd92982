// Runs that survive: saved while training goes on, killed at any moment, ended early, warned of.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>

#include "rl/checkpoint/checkpoint.h"
#include "tests/rl/python_waits.h"
#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class SurvivalTest : public TrainerTest {
 protected:
  // Of each process of this test's clusters and trainings.
  std::map<pid_t, long> resident_bytes() const {
    std::map<pid_t, long> bytes;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos ||
          name == std::to_string(::getpid()))
        continue;
      if (read(entry.path() / "environ").find(sessions_.string()) == std::string::npos) continue;
      std::istringstream pages(read(entry.path() / "statm"));
      long all = 0, resident = 0;
      if (pages >> all >> resident)
        bytes[static_cast<pid_t>(std::stol(name))] = resident * ::sysconf(_SC_PAGESIZE);
    }
    return bytes;
  }
};

TEST_F(SurvivalTest, KilledWhileACheckpointIsWrittenARunGoesOnWithTheSameNumbers) {
  const std::string options =
      "trainer.total_training_steps=30 trainer.save_freq=1 trainer.max_actor_ckpt_to_keep=2 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=2 ";
  const fs::path whole = folder_ / "whole";
  const fs::path killed = folder_ / "killed";
  const Outcome run = train(options + "trainer.default_local_dir=" + whole.string());
  ASSERT_EQ(run.code, 0) << run.output;
  ASSERT_NO_FATAL_FAILURE(kill_while_saving(
      train_command(options + "trainer.default_local_dir=" + killed.string()), killed));
  EXPECT_EQ(numbers(whole), numbers(killed));
  for (const char* file :
       {"actor/huggingface/model.safetensors", "actor/optimizer.safetensors", "trainer.json"}) {
    EXPECT_EQ(read(whole / "global_step_30" / file), read(killed / "global_step_30" / file))
        << file;
  }
  EXPECT_TRUE(verify_checkpoint(killed / "global_step_30").ok());
}

// The first Ctrl-C ends the step and saves it, whatever trainer.save_freq.
TEST_F(SurvivalTest, AnInterruptedRunIsSavedAndGoesOnWithTheSameNumbers) {
  const std::string options =
      "trainer.total_training_steps=40 trainer.save_freq=1000 trainer.test_freq=4 "
      "trainer.default_local_dir=";
  const fs::path whole = folder_ / "whole", cut = folder_ / "cut";
  const Outcome run = train(options + whole.string());
  ASSERT_EQ(run.code, 0) << run.output;
  const std::string told = interrupt_behind_step_three(train_command(options + cut.string()), cut);
  EXPECT_NE(told.find("of 40; the same command continues from there"), std::string::npos) << told;
  const Outcome rest = train(options + cut.string());
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_NE(rest.output.find("continuing after step"), std::string::npos) << rest.output;
  EXPECT_EQ(numbers(whole), numbers(cut));
}

TEST_F(SurvivalTest, ADamagedCheckpointIsPassedOver) {
  const std::string options =
      "trainer.save_freq=1 trainer.default_local_dir=" + (folder_ / "run").string() +
      " trainer.total_training_steps=";
  Outcome run = train(options + "3");
  ASSERT_EQ(run.code, 0) << run.output;
  const std::vector<std::string> first = numbers(folder_ / "run");
  const fs::path damaged = folder_ / "run" / "global_step_3" / "actor" / "optimizer.safetensors";
  std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-5, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-5, std::ios::end);
  file.put(byte);
  file.close();
  run = train(options + "3");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("checksum"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("continuing after step 2"), std::string::npos) << run.output;
  EXPECT_EQ(numbers(folder_ / "run"), first);
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_3").ok());
}

TEST_F(SurvivalTest, TheBestCheckpointStaysAndTrainingEndsEarly) {
  // A rate at which the score of validation does not go up for long.
  const std::string options =
      "data.val_batch_size=16 trainer.test_freq=1 trainer.save_freq=1 "
      "trainer.max_actor_ckpt_to_keep=1 trainer.total_training_steps=200 "
      "actor_rollout_ref.actor.optim.lr=0 trainer.save_best=val-core/toy/reward/mean@1 "
      "trainer.early_stop.metric=val-core/toy/reward/mean@1 trainer.early_stop.patience=3";
  const Outcome run = train(options);
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_NE(
      run.output.find(
          "stopping after step 4: val-core/toy/reward/mean@1 has not improved in 3 measurements"),
      std::string::npos)
      << run.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 5u);  // one of the validation before training
  // The first was the best, and the last is the newest.
  EXPECT_EQ(best_checkpoint_step(folder_ / "run"), 1);
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_1").ok());
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_4").ok());
  EXPECT_FALSE(fs::exists(folder_ / "run" / "global_step_2"));
  EXPECT_TRUE(fs::exists(folder_ / "run" / "global_step_3")) << "no step has followed the last";
  const Outcome again = train(options);
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_NE(again.output.find("nothing to do: stopped early after step 4 of 200"),
            std::string::npos)
      << again.output;
  EXPECT_EQ(numbers(folder_ / "run").size(), 5u);
}

TEST_F(SurvivalTest, DivergenceEndsTheRun) {
  const Outcome run = train(
      "algorithm.adv_estimator=gae critic.optim.lr=1e30 trainer.total_training_steps=40 "
      "trainer.save_freq=1000");
  EXPECT_EQ(run.code, 1) << run.output;
  EXPECT_NE(run.output.find(
                "the critic had no finite gradient in 10 consecutive steps: training has diverged"),
            std::string::npos)
      << run.output;
  const std::size_t steps = numbers(folder_ / "run").size();
  EXPECT_LT(steps, 20u);
  EXPECT_NE(run.output.find("step " + std::to_string(steps) +
                            ": the critic had no finite gradient in 10 consecutive steps"),
            std::string::npos)
      << run.output;
  EXPECT_FALSE(latest_whole_checkpoint(folder_ / "run").value_or(std::nullopt).has_value());
}

TEST_F(SurvivalTest, AnAbsurdLearningRateIsToldOrEndsTheRun) {
  const std::string absurd =
      "actor_rollout_ref.actor.optim.lr=3 actor_rollout_ref.actor.ppo_mini_batch_size=2 "
      "trainer.alarms.steps=1 trainer.total_training_steps=6 ";
  const Outcome warned =
      train(absurd + "trainer.default_local_dir=" + (folder_ / "warned").string());
  EXPECT_EQ(warned.code, 0) << warned.output;
  EXPECT_NE(warned.output.find("lower actor_rollout_ref.actor.optim.lr"), std::string::npos)
      << warned.output;
  EXPECT_EQ(numbers(folder_ / "warned").size(), 6u);
  const Outcome stopped =
      train(absurd + "trainer.save_freq=100 trainer.alarms.action=stop trainer.default_local_dir=" +
            (folder_ / "stopped").string());
  EXPECT_EQ(stopped.code, 1) << stopped.output;
  EXPECT_NE(stopped.output.find("(trainer.alarms.action=stop): "), std::string::npos)
      << stopped.output;
  const auto saved = latest_whole_checkpoint(folder_ / "stopped").value_or(std::nullopt);
  ASSERT_TRUE(saved.has_value()) << stopped.output;
  EXPECT_LT(checkpoint_step(*saved).value_or(6), 6);
}

TEST_F(SurvivalTest, ADivergedRunKeepsAnEarlierCheckpoint) {
  const std::string one = "trainer.save_freq=1 trainer.max_actor_ckpt_to_keep=1 ";
  ASSERT_EQ(train(one + "trainer.total_training_steps=3").code, 0);
  EXPECT_EQ(list_checkpoints(folder_ / "run").size(), 2u) << "no step has followed the last";
  const Outcome lost = train(
      one + "trainer.total_training_steps=30 actor_rollout_ref.actor.optim.weight_decay=1e18");
  EXPECT_EQ(lost.code, 1) << lost.output;
  EXPECT_NE(lost.output.find("training has diverged"), std::string::npos) << lost.output;
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_3").ok()) << lost.output;
  EXPECT_LE(list_checkpoints(folder_ / "run").size(), 2u)
      << "that of the step that lost them, and none of those after it";
  const Outcome back = train(
      one +
      "trainer.total_training_steps=5 trainer.resume_mode=resume_path trainer.resume_from_path=" +
      (folder_ / "run" / "global_step_3").string());
  EXPECT_EQ(back.code, 0) << back.output;
}

// The step that ruins the weights takes its update, and is saved.
TEST_F(SurvivalTest, TheCheckpointBeforeARuinousStepStays) {
  const std::string one = "trainer.save_freq=1 trainer.max_actor_ckpt_to_keep=1 ";
  ASSERT_EQ(train(one + "trainer.total_training_steps=3").code, 0);
  const Outcome ruined =
      train(one + "trainer.total_training_steps=30 actor_rollout_ref.actor.optim.lr=1e300");
  EXPECT_EQ(ruined.code, 1) << ruined.output;
  EXPECT_TRUE(verify_checkpoint(folder_ / "run" / "global_step_3").ok()) << ruined.output;
  EXPECT_LE(list_checkpoints(folder_ / "run").size(), 2u);
  const Outcome back = train(
      one +
      "trainer.total_training_steps=5 trainer.resume_mode=resume_path trainer.resume_from_path=" +
      (folder_ / "run" / "global_step_3").string());
  EXPECT_EQ(back.code, 0) << back.output;
}

// Each kind of run that goes wrong, with the limits that a user has who sets none. One is set
// only for the distance from a reference that knows nothing, which is no more than the logarithm of
// the vocabulary. A run that goes well tells nothing.
TEST_F(SurvivalTest, EachKindOfFailureIsTold) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "nothing.py") << "def compute_score(data_source, solution_str, "
                                           "ground_truth, extra_info):\n    return 0.5\n";
  const std::string kl =
      "actor_rollout_ref.actor.use_kl_loss=true actor_rollout_ref.actor.kl_loss_coef=0 "
      "actor_rollout_ref.actor.optim.lr=0.3 actor_rollout_ref.actor.ppo_mini_batch_size=2 "
      "trainer.alarms.reference_kl_max=1";
  struct Case {
    const char* folder;
    std::string arguments;
    const char* told;
  };
  for (const Case& one :
       {Case{"runs_away", kl, "the policy runs away from the reference: actor/kl_loss is "},
        Case{"collapses",
             "actor_rollout_ref.actor.entropy_coeff=-10 actor_rollout_ref.actor.optim.lr=0.03 "
             "trainer.total_training_steps=40",
             "the entropy has collapsed"},
        Case{"constant", "custom_reward_function.path=" + (folder_ / "nothing.py").string(),
             "responses to one prompt all score the same"},
        Case{"cut_off", "actor_rollout_ref.rollout.ignore_eos=true",
             "the length limit cuts the responses: response_length/clip_ratio is 1, above 0.99"},
        Case{"well",
             "sft.steps=20 sft.train_batch_size=16 sft.lr=1e-2 trainer.alarms.equal_scores_max=2",
             ""}}) {
    SCOPED_TRACE(one.folder);
    const Outcome run =
        train("trainer.total_training_steps=8 trainer.alarms.steps=3 trainer.default_local_dir=" +
              (folder_ / one.folder).string() + " " + one.arguments);
    EXPECT_EQ(run.code, 0) << run.output;
    if (*one.told != 0) {
      EXPECT_NE(run.output.find(one.told), std::string::npos) << run.output;
    } else {
      EXPECT_EQ(run.output.find("(trainer.alarms."), std::string::npos) << run.output;
    }
  }
}

// While the first run waits for its rewards, a second one in its folder is told who has it; the
// first does not notice.
TEST_F(SurvivalTest, TwoRunsDoNotWriteToOneFolder) {
  fs::create_directories(folder_);
  const fs::path begun = folder_ / "begun", go = folder_ / "go", gate = folder_ / "gate.py";
  std::ofstream(gate) << kPythonWaits +
                             "def compute_score(data_source, solution_str, ground_truth, "
                             "extra_info):\n"
                             "    open(\"" +
                             begun.string() +
                             "\", \"w\").close()\n"
                             "    wait_for_file(\"" +
                             go.string() +
                             "\")\n"
                             "    return float(len(solution_str))\n";
  const std::string samples = " trainer.rollout_data_dir=" + (folder_ / "samples").string();
  const pid_t first = start(train_command(
      "trainer.total_training_steps=2 reward.timeout=200 custom_reward_function.path=" +
      gate.string() + samples));
  ASSERT_TRUE(comes_while_it_runs(first, [&] { return fs::exists(begun); }))
      << read(folder_ / "output");
  const Outcome third = train("trainer.total_training_steps=2 trainer.default_local_dir=" +
                              (folder_ / "other").string() + samples);
  EXPECT_EQ(third.code, 1) << third.output;
  EXPECT_NE(third.output.find((folder_ / "samples").string() + ": another run writes there (pid " +
                              std::to_string(first) +
                              "); set trainer.rollout_data_dir to another folder"),
            std::string::npos)
      << third.output;
  const Outcome second = train("trainer.total_training_steps=2");
  EXPECT_EQ(second.code, 1) << second.output;
  EXPECT_NE(second.output.find((folder_ / "run").string() + ": another run writes there (pid " +
                               std::to_string(first) +
                               "); set trainer.default_local_dir to another folder"),
            std::string::npos)
      << second.output;
  std::ofstream(go) << "";
  int status = 0;
  EXPECT_EQ(::waitpid(first, &status, 0), first);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << read(folder_ / "output");
  EXPECT_EQ(numbers(folder_ / "run").size(), 2u);
}

// Two hundred steps of 256 samples each, with validations and checkpoints, leave no process of the
// run larger than it was after a hundred.
TEST_F(SurvivalTest, MemoryDoesNotGrowWithTheSteps) {
  const fs::path run = folder_ / "run";
  const pid_t pid =
      start(train_command("data.train_batch_size=32 actor_rollout_ref.rollout.n=8 data.toy.rows=64 "
                          "data.val_batch_size=16 trainer.test_freq=20 trainer.save_freq=20 "
                          "trainer.max_actor_ckpt_to_keep=1 trainer.total_training_steps=100000"));
  ASSERT_TRUE(wait_for_step(pid, run, 100)) << read(folder_ / "output");
  const std::map<pid_t, long> before = resident_bytes();
  ASSERT_TRUE(wait_for_step(pid, run, 300)) << read(folder_ / "output");
  const std::map<pid_t, long> after = resident_bytes();
  ::kill(pid, SIGINT);
  ::waitpid(pid, nullptr, 0);
  int compared = 0;
  for (const auto& [process, bytes] : before) {
    const auto found = after.find(process);
    if (found == after.end()) continue;  // not one of those that stay
    ++compared;
    EXPECT_LE(found->second, bytes + std::max(5'000'000L, bytes * 3 / 100))
        << (process == pid ? "the driver" : "a worker or node") << " had " << bytes
        << " bytes after step 100";
  }
  EXPECT_TRUE(before.contains(pid));
  EXPECT_GE(compared, 3) << "the driver, the policy and the reward";
}

TEST_F(SurvivalTest, AClosedTerminalLosesNoStep) {
  const fs::path run = folder_ / "run";
  const std::string told = interrupt_behind_step_three(
      train_command("trainer.save_freq=1000 trainer.total_training_steps=100000"), run, SIGHUP);
  EXPECT_NE(told.find("the same command continues from there"), std::string::npos) << told;
  const std::string saved = read(run / "latest_checkpointed_iteration.txt");
  EXPECT_EQ(numbers(run).size(), static_cast<std::size_t>(std::atoi(saved.c_str()))) << saved;
}

TEST_F(SurvivalTest, AReaderThatGoesLosesNoStep) {
  const Outcome run =
      shell(train_command("trainer.save_freq=1000 trainer.total_training_steps=100000") +
            " | grep -m 1 step:3/");
  EXPECT_NE(run.output.find("interrupted: stopping after this step with a checkpoint"),
            std::string::npos)
      << run.output;
  const int saved = std::atoi(read(folder_ / "run/latest_checkpointed_iteration.txt").c_str());
  EXPECT_GE(saved, 3);
  EXPECT_EQ(numbers(folder_ / "run").size(), static_cast<std::size_t>(saved));
}

TEST_F(SurvivalTest, EndingEarlyNeedsSomethingThatIsMeasured) {
  struct Case {
    const char* arguments;
    const char* told;
  };
  for (const Case& wrong :
       {Case{"trainer.early_stop.metric=val-core/toy/reward/mean@1", "trainer.test_freq"},
        Case{"trainer.early_stop.target=1", "trainer.early_stop.metric"},
        Case{"trainer.save_best=critic/score/mean", "trainer.save_freq"},
        Case{"trainer.alarms.action=shout", "trainer.alarms.action"}}) {
    const Outcome run = train(std::string("trainer.total_training_steps=1 ") + wrong.arguments);
    EXPECT_EQ(run.code, 1) << wrong.arguments << "\n" << run.output;
    EXPECT_NE(run.output.find(wrong.told), std::string::npos) << wrong.arguments << "\n"
                                                              << run.output;
  }
}

}  // namespace
}  // namespace rl
