#include "rl/run/run_length.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

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

TEST(RunLength, NullAndADeletedKeyAreNotSet) {
  for (const char* unset : {"trainer.total_epochs=null", "~trainer.total_epochs"})
    EXPECT_EQ(of({"trainer.total_training_steps=99", unset}).last(2), 99) << unset;
  EXPECT_EQ(of({"trainer.total_epochs=null"}).last(2), 60);
  const auto endless = Config::load({std::nullopt, {"~trainer.total_epochs"}});
  EXPECT_FALSE(RunLength::from_config(*endless).ok());
}

TEST(RunLength, MoreThanCanBeCountedIsAsManyAsCan) {
  EXPECT_EQ(of({"trainer.total_epochs=1000000000000000000"}).last(16),
            std::numeric_limits<std::int64_t>::max());
}

// The file that a run leaves.
TEST(RunLength, AWrittenConfigurationAsksForTheSameLength) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"trainer.total_training_steps=99"},
        {"trainer.total_training_steps=99", "trainer.total_epochs=3"},
        {"trainer.total_epochs=3"},
        {}}) {
    const auto config = Config::load({std::nullopt, overrides});
    ASSERT_TRUE(config.ok());
    const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                       ("starling_length_" + std::to_string(::getpid()) + ".yaml");
    std::ofstream(file) << config->to_yaml();
    const auto read = Config::load({.file = file});
    std::filesystem::remove(file);
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_EQ(RunLength::from_config(*read)->last(2), of(overrides).last(2));
  }
}

}  // namespace
}  // namespace rl
