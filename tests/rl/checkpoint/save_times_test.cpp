#include "rl/checkpoint/save_times.h"

#include <gtest/gtest.h>

#include "rl/config/stage_keys.h"

namespace rl {
namespace {

SaveTimes times(const KeyTable& keys, const std::string& value) {
  const auto config =
      Config::load({.file = {}, .overrides = {"trainer.save_freq=" + value}, .keys = &keys});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  const auto read = SaveTimes::from_config(*config);
  EXPECT_TRUE(read.ok()) << read.status().to_string();
  return read.value_or(SaveTimes{.steps = -7});
}

// The steps of a run of seven, three an epoch, that are saved.
std::vector<std::int64_t> saved(const SaveTimes& save) {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= 7; ++step) {
    if (save.due(step, step == 7, 3)) steps.push_back(step);
  }
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(SaveTimes, TheLastStepIsSavedUnlessNothingIs) {
  for (const KeyTable* keys : {&train_keys(), &sft_keys(), &dpo_keys(), &kto_keys(), &rm_keys()}) {
    const auto defaults = Config::load({.file = {}, .overrides = {}, .keys = keys});
    ASSERT_TRUE(defaults.ok());
    EXPECT_EQ(saved(*SaveTimes::from_config(*defaults)), Steps{7}) << keys->command();
    EXPECT_EQ(saved(times(*keys, "-1")), Steps{7}) << keys->command();
    EXPECT_EQ(saved(times(*keys, "3")), (Steps{3, 6, 7})) << keys->command();
    EXPECT_EQ(saved(times(*keys, "100")), Steps{7}) << keys->command();
    EXPECT_EQ(saved(times(*keys, "0")), Steps{}) << keys->command();
    EXPECT_TRUE(times(*keys, "0").never()) << keys->command();
  }
  EXPECT_EQ(saved(times(train_keys(), "false")), Steps{});
  EXPECT_EQ(saved(times(sft_keys(), "after_each_epoch")), (Steps{3, 6, 7}));
  EXPECT_TRUE(times(sft_keys(), "after_each_epoch").repeats());
  EXPECT_FALSE(times(sft_keys(), "-1").repeats());
}

TEST(SaveTimes, AreTold) {
  EXPECT_EQ(times(train_keys(), "-1").text("DIR", ""),
            "at the end only (trainer.save_freq=-1), in DIR");
  EXPECT_EQ(times(train_keys(), "5").text("DIR", ""), "every 5 step(s) and at the end, in DIR");
  EXPECT_EQ(times(train_keys(), "5").text("DIR", "val/loss"),
            "every 5 step(s) and at the end, and the best by val/loss, in DIR");
  EXPECT_EQ(times(train_keys(), "0").text("DIR", ""), "none: trainer.save_freq=0 keeps no weights");
  EXPECT_EQ(times(train_keys(), "0").text("DIR", "val/loss"),
            "the best by val/loss only (trainer.save_freq=0), in DIR");
}

TEST(SaveTimes, WhatIsBelowMinusOneIsRefused) {
  const auto config = Config::load({.file = {}, .overrides = {"trainer.save_freq=-2"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(SaveTimes::from_config(*config).status().message(),
            "trainer.save_freq is -2 (from the command line): it is a number of steps, -1 (at the "
            "end only) or 0 (never)");
}

}  // namespace
}  // namespace rl
