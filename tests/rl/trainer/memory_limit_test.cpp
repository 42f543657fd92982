// Four workers below a limit of memory that copies of the model on each would exceed. What is kept
// once trains there, to the same model.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/rl/trainer/trainer_fixture.h"
#include "tests/support/memory_group.h"

namespace rl {
namespace {

using MemoryLimitTest = TrainerTest;

TEST_F(MemoryLimitTest, WhatIsKeptOnceTrainsWhereCopiesDoNotFit) {
  constexpr std::uint64_t kLimit = 2'200'000'000;
  fs::create_directories(folder_);
  const fs::path model = folder_ / "large";  // 25 million parameters
  const auto made =
      make_toy_model(model, {.layers = 6, .hidden_size = 512, .intermediate_size = 2048});
  ASSERT_TRUE(made.ok()) << made.to_string();
  const std::string keys =
      "trainer.gradient_leaves=4 trainer.n_gpus_per_node=4 "
      "trainer.total_training_steps=2 data.train_batch_size=8 "
      "actor_rollout_ref.model.path=" +
      model.string();
  const std::string copies = " actor_rollout_ref.actor.fsdp_config.zero_level=0";
  const auto run_in = [&](const support::MemoryGroup& group, const std::string& name,
                          const std::string& more) {
    return shell(
        group.enter() + " && exec " +
        train_command(keys + more + " trainer.default_local_dir=" + (folder_ / name).string()));
  };
  const auto weights_of = [&](const std::string& name) {
    return read(folder_ / name / "global_step_2/actor/huggingface/model.safetensors");
  };
  const std::string saves = " trainer.save_freq=-1";
  {
    support::MemoryGroup unlimited;
    if (!unlimited.exists()) GTEST_SKIP() << "no control group for memory can be made here";
    const Outcome whole = run_in(unlimited, "copies", copies + saves);
    ASSERT_EQ(whole.code, 0) << whole.output;
    if (unlimited.peak() == 0) GTEST_SKIP() << "this kernel does not say what a group has had";
    EXPECT_GT(unlimited.peak(), kLimit);
    EXPECT_TRUE(unlimited.remove());
  }
  support::MemoryGroup limited;
  ASSERT_TRUE(limited.limit(kLimit));
  const Outcome refused = run_in(limited, "refused", copies);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.output.find("do not fit the nodes' memory"), std::string::npos)
      << refused.output;
  const Outcome once = run_in(limited, "once", saves);
  EXPECT_EQ(once.code, 0) << once.output;
  EXPECT_NE(once.output.find("zero_level=auto is "), std::string::npos) << once.output;
  EXPECT_LE(limited.peak(), kLimit);
  EXPECT_TRUE(limited.remove());
  EXPECT_FALSE(weights_of("once").empty());
  EXPECT_TRUE(weights_of("once") == weights_of("copies"));
}

}  // namespace
}  // namespace rl
