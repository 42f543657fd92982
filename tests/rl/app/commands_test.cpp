#include "rl/app/commands.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

#include "placement/app/rl_program.h"
#include "rl/config/key_table.h"

namespace rl {
namespace {

using Names = std::set<std::string>;

TEST(Commands, StarlingKnowsEachOneOnce) {
  Names ours, known;
  for (const ToolCommand& tool : kToolCommands) ours.insert(tool.name);
  for (const TrainingCommand& training : kTrainingCommands) ours.insert(training.name);
  for (const placement::RlCommand& command : placement::kRlCommands)
    EXPECT_TRUE(known.insert(command.name).second) << command.name << " is there twice";
  EXPECT_EQ(ours.size(), std::size(kToolCommands) + std::size(kTrainingCommands));
  EXPECT_EQ(ours, known);
}

TEST(Commands, WhatTrainsHasKeysAndWhatHasKeysIsAskedAboutThem) {
  Names trainings, with_config;
  for (const TrainingCommand& training : kTrainingCommands) trainings.insert(training.name);
  for (const placement::RlCommand& command : placement::kRlCommands) {
    if (command.has_config) with_config.insert(command.name);
    EXPECT_EQ(find_key_table(command.name) != nullptr, command.has_config) << command.name;
  }
  EXPECT_EQ(with_config, trainings);
}

}  // namespace
}  // namespace rl
