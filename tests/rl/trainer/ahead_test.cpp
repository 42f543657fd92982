// Whole runs with separate rollout workers, one step ahead.
#include <csignal>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

class AheadTest : public TrainerTest {
 protected:
  // Processes of actors.
  std::vector<pid_t> workers() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string environment = read(entry.path() / "environ");
      if (environment.find(sessions_.string()) == std::string::npos ||
          environment.find("STARLING_WORKER=") == std::string::npos)
        continue;
      found.push_back(static_cast<pid_t>(std::stol(entry.path().filename().string())));
    }
    return found;
  }
  Outcome run(const std::string& name, const std::string& options) const {
    return train("actor_rollout_ref.hybrid_engine=False trainer.default_local_dir=" +
                 (folder_ / name).string() + " " + options);
  }
};

TEST_F(AheadTest, SamplesAreThoseOfTheWeightsBeforeTheLastUpdate) {
  const Outcome ahead =
      run("ahead", "trainer.total_training_steps=4 rollout.nnodes=1 rollout.n_gpus_per_node=1");
  ASSERT_EQ(ahead.code, 0) << ahead.output;
  EXPECT_NE(ahead.output.find("samples are one step old"), std::string::npos) << ahead.output;
  ASSERT_EQ(train("trainer.total_training_steps=4 trainer.default_local_dir=" +
                  (folder_ / "turns").string())
                .code,
            0);
  auto old = steps("ahead");
  const auto fresh = steps("turns");
  ASSERT_EQ(old.size(), 4U);
  ASSERT_EQ(fresh.size(), 4U);
  for (std::size_t i = 0; i < old.size(); ++i) {
    EXPECT_EQ(old[i]["training/off_policy/trajectory_staleness/mean"].get<double>(),
              i == 0 ? 0.0 : 1.0);
    const nlohmann::json all = old[i];
    for (const auto& [name, value] : all.items()) {
      if (name.starts_with("training/off_policy/")) old[i].erase(name);
    }
  }
  EXPECT_EQ(old[0], fresh[0])
      << "both generate the first samples by the weights that training begins with";
  EXPECT_EQ(fresh[1]["actor/ppo_kl"].get<double>(), 0.0);
  for (std::size_t i = 1; i < old.size(); ++i)
    EXPECT_NE(old[i]["actor/ppo_kl"].get<double>(), 0.0)
        << "step " << i + 1 << " trains on samples of other weights";
}

TEST_F(AheadTest, ARunThatIsTakenUpGoesOnWithTheSameNumbers) {
  const std::string options =
      "trainer.save_freq=2 actor_rollout_ref.actor.use_kl_loss=true "
      "trainer.total_training_steps=6 ";
  const Outcome whole = run("whole", options);
  ASSERT_EQ(whole.code, 0) << whole.output;
  ASSERT_TRUE(fs::exists(folder_ / "whole" / "global_step_4" / "ahead.bin"));
  const Outcome rest =
      run("rest", options + "trainer.resume_mode=resume_path trainer.resume_from_path=" +
                      (folder_ / "whole" / "global_step_4").string());
  ASSERT_EQ(rest.code, 0) << rest.output;
  const auto all = numbers(folder_ / "whole"), last = numbers(folder_ / "rest");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(std::vector<std::string>(all.end() - 2, all.end()), last);
  const fs::path model = fs::path("global_step_6") / "actor" / "huggingface" / "model.safetensors";
  EXPECT_EQ(read(folder_ / "whole" / model), read(folder_ / "rest" / model));
}

// verl's separate trainer, three steps ahead; a checkpoint in their midst, in another number of
// workers.
TEST_F(AheadTest, SamplesOfSeveralStepsAreOnTheirWay) {
  const std::string options =
      "trainer.v1.trainer_mode=separate_async actor_rollout_ref.rollout.nnodes=1 "
      "trainer.v1.separate_async.num_warmup_batches=3 "
      "trainer.v1.separate_async.parameter_sync_step=2 "
      "actor_rollout_ref.actor.ppo_mini_batch_size=16 data.train_batch_size=32 trainer.save_freq=3 "
      "trainer.total_training_steps=7 ";
  const auto separate = [&](const std::string& name, const std::string& more) {
    return train("trainer.default_local_dir=" + (folder_ / name).string() + " " + options + more);
  };
  const Outcome whole = separate("whole", "");
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_NE(whole.output.find("samples are 3 steps old"), std::string::npos) << whole.output;
  const auto metrics = steps("whole");
  ASSERT_EQ(metrics.size(), 7U);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const double updates = static_cast<double>(std::min<std::size_t>(i, 3));
    EXPECT_EQ(metrics[i]["training/off_policy/trajectory_staleness/mean"].get<double>(), updates)
        << "step " << i + 1;
  }
  const Outcome rest = separate(
      "rest",
      "trainer.n_gpus_per_node=2 trainer.resume_mode=resume_path trainer.resume_from_path=" +
          (folder_ / "whole" / "global_step_3").string());
  ASSERT_EQ(rest.code, 0) << rest.output;
  const auto resumed = steps("rest");
  ASSERT_EQ(resumed.size(), 4U);
  for (std::size_t i = 0; i < resumed.size(); ++i) {
    for (const char* name : {"critic/score/mean", "response_length/mean",
                             "training/off_policy/trajectory_staleness/mean"})
      EXPECT_EQ(resumed[i][name], metrics[i + 3][name]) << name << " of step " << i + 4;
    EXPECT_NEAR(resumed[i]["actor/grad_norm"].get<double>(),
                metrics[i + 3]["actor/grad_norm"].get<double>(), 1e-4);
  }
  const Outcome other =
      separate("other",
               "data.train_batch_size=16 trainer.v1.separate_async.parameter_sync_step=1 "
               "trainer.resume_mode=resume_path trainer.resume_from_path=" +
                   (folder_ / "whole" / "global_step_3").string());
  EXPECT_NE(other.code, 0);
  EXPECT_NE(other.output.find("ahead.bin"), std::string::npos) << other.output;
}

TEST_F(AheadTest, HowManyWorkersDrawChangesNoNumber) {
  const std::string options = "trainer.total_training_steps=3 trainer.n_gpus_per_node=2 ";
  const Outcome one = run("one", options);
  ASSERT_EQ(one.code, 0) << one.output;
  const Outcome two = run("two", options + "rollout.n_gpus_per_node=2");
  ASSERT_EQ(two.code, 0) << two.output;
  EXPECT_EQ(numbers(folder_ / "one"), numbers(folder_ / "two"));
}

TEST_F(AheadTest, AWorkerThatIsKilledEndsTheRunWithAnError) {
  std::string told;
  for (const std::size_t index : {0U, 1U, 2U}) {  // a policy, a reward, and the one that generates
    const fs::path folder = folder_ / ("run" + std::to_string(index));
    const std::string command = train_command(
        "actor_rollout_ref.hybrid_engine=False trainer.total_training_steps=100000 "
        "trainer.default_local_dir=" +
        folder.string());
    fs::remove(folder_ / "output");
    const pid_t pid = start(command);
    ASSERT_TRUE(wait_for_step(pid, folder, 3)) << read(folder_ / "output");
    const std::vector<pid_t> found = workers();
    ASSERT_EQ(found.size(), 3U) << processes();
    ::kill(found[index], SIGKILL);
    int status = 0;
    const bool ended = support::eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; },
                                           std::chrono::seconds(60));
    if (!ended) ::kill(pid, SIGKILL);
    ASSERT_TRUE(ended) << "it hangs: " << read(folder_ / "output");
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    told += read(folder_ / "output");
    EXPECT_TRUE(all_end()) << processes();
  }
  EXPECT_NE(told.find("the rollout workers: "), std::string::npos) << told;
}

}  // namespace
}  // namespace rl
