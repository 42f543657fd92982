#include "rl/train/rollout_workers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rl {
namespace {

runtime::Result<std::optional<RolloutWorkersOptions>> options_of(std::vector<std::string> overrides, std::int64_t policy_workers = 4) {
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  if (!config.ok()) return config.status();
  return RolloutWorkersOptions::from_config(*config, policy_workers);
}

TEST(RolloutWorkers, ThePolicyDrawsUnlessOthersAreAskedFor) {
  const auto shared = options_of({});
  ASSERT_TRUE(shared.ok()) << shared.status().message();
  EXPECT_FALSE(shared->has_value());
  const auto one = options_of({"actor_rollout_ref.hybrid_engine=False"});
  ASSERT_TRUE(one.ok() && one->has_value());
  EXPECT_EQ((*one)->size(), 1);
  const auto four = options_of({"actor_rollout_ref.hybrid_engine=False", "rollout.nnodes=2", "rollout.n_gpus_per_node=2"});
  ASSERT_TRUE(four.ok() && four->has_value());
  EXPECT_EQ((*four)->size(), 4);
}

TEST(RolloutWorkers, ErrorsNameTheKey) {
  const std::string own = "actor_rollout_ref.hybrid_engine=False";
  const auto message = [](std::vector<std::string> overrides) { return options_of(std::move(overrides)).status().message(); };
  EXPECT_NE(message({"rollout.nnodes=1"}).find("hybrid_engine=false"), std::string::npos) << message({"rollout.nnodes=1"});
  EXPECT_NE(message({own, "rollout.nnodes=0"}).find("rollout.nnodes: must be at least 1"), std::string::npos) << message({own, "rollout.nnodes=0"});
  EXPECT_NE(message({own, "rollout.n_gpus_per_node=5"}).find("5 workers that draw samples for 4 that train"), std::string::npos) << message({own, "rollout.n_gpus_per_node=5"});
  EXPECT_NE(message({own, "algorithm.filter_groups.enable=true"}).find("algorithm.filter_groups.enable"), std::string::npos) << message({own, "algorithm.filter_groups.enable=true"});
}

}  // namespace
}  // namespace rl
