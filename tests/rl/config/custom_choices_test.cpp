#include "rl/config/custom_choices.h"

#include <gtest/gtest.h>

#include "rl/config/check.h"
#include "rl/config/config.h"
#include "rl/config/stage_keys.h"

namespace rl {
namespace {

constexpr const char* kLossMode = "actor_rollout_ref.actor.policy_loss.loss_mode";
constexpr const char* kNumber = "actor_rollout_ref.actor.policy_loss.test_number";

std::string choice_complaint(std::vector<std::string> overrides, const KeyTable* keys = nullptr) {
  const auto config = Config::load({.file = {}, .overrides = std::move(overrides), .keys = keys});
  return config.ok() ? "" : config.status().message();
}

TEST(CustomChoices, AValueIsTakenOnceItIsAdded) {
  const std::string chosen = std::string(kLossMode) + "=test_band";
  EXPECT_NE(choice_complaint({chosen}), "");
  add_choice(kLossMode, "test_band");
  EXPECT_EQ(choice_complaint({chosen}), "");
  EXPECT_EQ(added_choices(kLossMode).back(), "test_band");
  EXPECT_TRUE(added_choices("algorithm.kl_penalty").empty());
  // The others are refused with the whole list.
  const std::string told = choice_complaint({std::string(kLossMode) + "=test_hand"});
  EXPECT_NE(told.find("vanilla, "), std::string::npos) << told;
  EXPECT_NE(told.find("test_band, got the string 'test_hand'"), std::string::npos) << told;
  const auto check = check_config({.file = {}, .overrides = {chosen}});
  ASSERT_TRUE(check.ok());
  EXPECT_TRUE(check->passes());
}

TEST(CustomChoices, AKeyIsTakenOnceItIsAdded) {
  const std::string set = std::string(kNumber) + "=0.25";
  EXPECT_NE(choice_complaint({set}), "");
  add_key(kNumber);
  add_key(kNumber);
  for (const std::string prefix : {"", "+", "++"}) {
    const auto config = Config::load({.file = {}, .overrides = {prefix + set}});
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    EXPECT_EQ(*config->get_float(kNumber), 0.25);
    for (const std::string& note : config->notes())
      EXPECT_EQ(note.find("test_number"), std::string::npos) << note;
  }
  const auto unset = Config::load({});
  EXPECT_EQ(*unset->find_float(kNumber), std::nullopt);
  EXPECT_NE(choice_complaint({set}, &sft_keys()), "") << "it is a key of starling train";
}

TEST(CustomChoicesDeathTest, WhatIsThereAlreadyIsABug) {
  EXPECT_DEATH(add_choice(kLossMode, "gspo"), "takes \"gspo\" already");
  EXPECT_DEATH(add_choice(kLossMode, ""), "is not a name");
  EXPECT_DEATH(add_choice(kLossMode, "a|b"), "is not a name");
  EXPECT_DEATH(add_choice("trainer.project_name", "mine"), "has no list of values");
  EXPECT_DEATH(add_choice("nobody.knows", "mine"), "has no list of values");
  EXPECT_DEATH(add_key(kLossMode), "is a key already");
}

}  // namespace
}  // namespace rl
