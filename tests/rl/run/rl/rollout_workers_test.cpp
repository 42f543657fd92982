#include "rl/run/rl/rollout_workers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rl {
namespace {

runtime::Result<std::optional<RolloutWorkersOptions>> worker_options(
    std::vector<std::string> overrides, std::int64_t policy_workers = 4) {
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  if (!config.ok()) return config.status();
  return RolloutWorkersOptions::from_config(*config, policy_workers);
}

TEST(RolloutWorkers, ThePolicyDrawsUnlessOthersAreAskedFor) {
  const auto shared = worker_options({});
  ASSERT_TRUE(shared.ok()) << shared.status().message();
  EXPECT_FALSE(shared->has_value());
  const auto one = worker_options({"actor_rollout_ref.hybrid_engine=False"});
  ASSERT_TRUE(one.ok() && one->has_value());
  EXPECT_EQ((*one)->size(), 1);
  const auto four = worker_options(
      {"actor_rollout_ref.hybrid_engine=False", "rollout.nnodes=2", "rollout.n_gpus_per_node=2"});
  ASSERT_TRUE(four.ok() && four->has_value());
  EXPECT_EQ((*four)->size(), 4);
  EXPECT_EQ((*four)->steps_ahead, 1);
}

TEST(RolloutWorkers, VerlsSeparateTrainerSaysHowFarAhead) {
  const std::vector<std::string> common = {
      "trainer.v1.trainer_mode=separate_async", "actor_rollout_ref.rollout.nnodes=2",
      "data.train_batch_size=32", "actor_rollout_ref.actor.ppo_mini_batch_size=8"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return worker_options(std::move(more));
  };
  const auto one = with({});
  ASSERT_TRUE(one.ok() && one->has_value()) << one.status().message();
  EXPECT_EQ((*one)->size(), 2);
  EXPECT_EQ((*one)->steps_ahead, 1);
  const auto three =
      with({"actor_rollout_ref.hybrid_engine=False", "actor_rollout_ref.rollout.n_gpus_per_node=2",
            "trainer.v1.separate_async.num_warmup_batches=3", "data.gen_batch_size=1"});
  ASSERT_TRUE(three.ok() && three->has_value()) << three.status().message();
  EXPECT_EQ((*three)->size(), 4);
  EXPECT_EQ((*three)->steps_ahead, 3);
  const auto message = [&](std::vector<std::string> overrides) {
    return with(std::move(overrides)).status().message();
  };
  EXPECT_NE(message({"trainer.v1.separate_async.num_warmup_batches=1.5"})
                .find("num_warmup_batches: expected an integer"),
            std::string::npos);
  EXPECT_NE(message({"trainer.v1.separate_async.num_warmup_batches=0"})
                .find("num_warmup_batches: must be at least 1"),
            std::string::npos);
  EXPECT_NE(message({"trainer.v1.separate_async.parameter_sync_step=3"}).find("32 is not 3 * 8"),
            std::string::npos);
  EXPECT_NE(message({"trainer.v1.separate_async.num_warmup_batches=8"})
                .find("max_off_policy_threshold: must be above"),
            std::string::npos);
  EXPECT_TRUE(with({"trainer.v1.separate_async.num_warmup_batches=8",
                    "trainer.v1.sampler.max_off_policy_threshold=null"})
                  .ok());
  EXPECT_NE(message({"rollout.nnodes=1"}).find("rollout.nnodes: must be left out"),
            std::string::npos)
      << message({"rollout.nnodes=1"});
  EXPECT_NE(message({"actor_rollout_ref.rollout.nnodes=0"})
                .find("actor_rollout_ref.rollout.nnodes: must be at least 1"),
            std::string::npos);
  EXPECT_NE(worker_options({"actor_rollout_ref.rollout.nnodes=1"})
                .status()
                .message()
                .find("separate_async"),
            std::string::npos);
}

TEST(RolloutWorkers, ErrorsNameTheKey) {
  const std::string own = "actor_rollout_ref.hybrid_engine=False";
  const auto message = [](std::vector<std::string> overrides) {
    return worker_options(std::move(overrides)).status().message();
  };
  EXPECT_NE(message({"rollout.nnodes=1"}).find("hybrid_engine=false"), std::string::npos)
      << message({"rollout.nnodes=1"});
  EXPECT_NE(message({own, "rollout.nnodes=0"}).find("rollout.nnodes: must be at least 1"),
            std::string::npos)
      << message({own, "rollout.nnodes=0"});
  EXPECT_NE(message({own, "rollout.n_gpus_per_node=5"}).find("5 rollout workers for 4 that train"),
            std::string::npos)
      << message({own, "rollout.n_gpus_per_node=5"});
  EXPECT_NE(
      message({own, "algorithm.filter_groups.enable=true"}).find("algorithm.filter_groups.enable"),
      std::string::npos)
      << message({own, "algorithm.filter_groups.enable=true"});
}

}  // namespace
}  // namespace rl
