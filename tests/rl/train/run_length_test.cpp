#include "rl/train/run_length.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

RunLength of(std::vector<std::string> overrides) {
  const auto config = Config::load({std::nullopt, std::move(overrides)});
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return RunLength::from_config(*config).value();
}

TEST(RunLength, StepsAndEpochsBothEndARunWhereTheyAreSet) {
  const std::string steps = "trainer.total_training_steps=5", epoch = "trainer.total_epochs=1";
  EXPECT_EQ(of({steps}).last(2), 5) << "more epochs than verl's default are none to end it";
  EXPECT_EQ(of({epoch}).last(2), 2);
  EXPECT_EQ(of({steps, epoch}).last(2), 2);
  EXPECT_EQ(of({steps, epoch}).last(9), 5);
  EXPECT_EQ(of({steps, epoch}).scheduled(2), 5);
  EXPECT_EQ(of({}).last(2), 60);
}

}  // namespace
}  // namespace rl
