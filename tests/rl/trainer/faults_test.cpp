// A hundred faults at random places of a training on several workers: a worker that is killed or
// stopped. The run ends within its deadline, says whose fault it was, and leaves nothing behind.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <string>

#include "tests/rl/trainer/trainer_fixture.h"

namespace rl {
namespace {

constexpr int kFaults = 25;  // of each test
constexpr std::chrono::seconds kRankTimeout{2};
constexpr std::chrono::seconds kEndsWithin{20};  // with whatever else the machine does

// How `workers` workers share passes and weights: one of the ways that there are.
std::string drawn_sharing(int workers, int drawn) {
  if (workers % 2 != 0) return "";
  switch (drawn) {
    case 0: return " parallel_config.tensor_parallel_size=2";
    case 1: return " actor_rollout_ref.actor.ulysses_sequence_parallel_size=2";
    case 2: return " actor_rollout_ref.actor.fsdp_config.fsdp_size=2";
    case 3: return " parallel_config.pipeline_parallel_size=2";
    case 4:
      return " parallel_config.pipeline_parallel_size=2"
             " actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1";
    case 5:
      return std::string(" parallel_config.pipeline_parallel_size=2") +
             (workers == 4 ? " parallel_config.tensor_parallel_size=2" : "");
    default: return "";
  }
}

class FaultsTest : public TrainerTest, public ::testing::WithParamInterface<int> {};

TEST_P(FaultsTest, EndTheRunWithinItsDeadlineAndAreTold) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const fs::path run = folder_ / "run";
  for (int fault = 0; fault < kFaults; ++fault) {
    const int number = draw(2, 4);
    const bool stops = draw(0, 1) == 1;
    const int zero = draw(0, 3);
    const int step = draw(1, 5), pause_ms = draw(0, 60);
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + ", fault " + std::to_string(fault) +
                 (stops ? ", stopped" : ", killed"));
    fs::remove_all(run);
    fs::remove(folder_ / "output");
    fs::create_directories(folder_);
    const pid_t pid = start(train_command(
        "trainer.total_training_steps=100000 trainer.rank_timeout=" +
        std::to_string(kRankTimeout.count()) + " trainer.n_gpus_per_node=" +
        std::to_string(number) + " actor_rollout_ref.model.path=" + model(/*layers=*/2) +
        " actor_rollout_ref.actor.fsdp_config.zero_level=" + std::to_string(zero) +
        (draw(0, 2) == 0 ? " algorithm.adv_estimator=gae critic.optim.lr=1e-3" : "") +
        (draw(0, 1) == 0 ? " trainer.gradient_leaves=6" : "") +
        (draw(0, 2) == 0 ? " actor_rollout_ref.actor.optim.optimizer=Muon" : "") +
        drawn_sharing(number, draw(0, 6))));
    ASSERT_TRUE(wait_for_step(pid, run, step)) << read(folder_ / "output");
    support::work_for(std::chrono::milliseconds(pause_ms));
    const std::vector<pid_t> all = workers();
    ASSERT_GE(all.size(), static_cast<std::size_t>(number)) << processes();
    ASSERT_EQ(::kill(all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))],
                     stops ? SIGSTOP : SIGKILL),
              0);
    int status = 0;
    const bool ended = support::eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; },
                                           kRankTimeout + kEndsWithin);
    const std::string output = read(folder_ / "output");
    if (!ended) ::kill(pid, SIGKILL);
    ASSERT_TRUE(ended) << output;
    EXPECT_NE(status, 0);
    EXPECT_NE(output.find("rank "), std::string::npos) << output;
    EXPECT_NE(output.find(stops ? "does not answer" : "SIGKILL"), std::string::npos) << output;
    EXPECT_TRUE(support::eventually([&] { return processes().empty(); }, kEndsWithin))
        << processes();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultsTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rl
