#include "rl/run/stage_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rl/config/stage_keys.h"

namespace rl {
namespace {

// What is wrong with a configuration of `starling sft`.
std::string told(std::vector<std::string> overrides) {
  const auto config =
      Config::load({.file = {}, .overrides = std::move(overrides), .keys = &sft_keys()});
  if (!config.ok()) return "not loaded: " + config.status().message();
  return StageOptions::from_config(*config).status().message();
}

// What a run is told first is what it would meet first: of the loop before the workers.
TEST(StageOptions, TheLoopIsJudgedBeforeTheWorkers) {
  const std::vector<std::string> one_beta{"optim.betas=[0.9]"};
  const std::string wrong_workers = told(one_beta);
  EXPECT_NE(wrong_workers.find("optim.betas"), std::string::npos) << wrong_workers;
  for (const auto& [key, overrides] :
       {std::pair<std::string, std::vector<std::string>>{"trainer.default_local_dir",
                                                         {"trainer.default_local_dir="}},
        {"data.micro_batch_size_per_gpu",
         {"data.use_dynamic_bsz=false", "data.micro_batch_size_per_gpu=0"}}}) {
    std::vector<std::string> both = overrides;
    both.insert(both.end(), one_beta.begin(), one_beta.end());
    EXPECT_TRUE(told(both).starts_with(key)) << told(both);
    EXPECT_EQ(told(both), told(overrides));
  }
}

}  // namespace
}  // namespace rl
