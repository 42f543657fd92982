#include "rl/model/lora_config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_failure.h"
#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::ErrorCode;
using Names = std::vector<std::string>;

LoraConfig config_with(const ordered_json& targets) {
  ordered_json object = {{"peft_type", "LORA"}, {"r", 4}};
  object["target_modules"] = targets;
  const auto config = LoraConfig::from_json(object, "adapter_config.json");
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? *config : LoraConfig();
}

TEST(LoraConfig, TargetsAreAListOrAnExpressionOrAllLayers) {
  EXPECT_EQ(config_with(Names{"q_proj", "v_proj"}).target_modules, (Names{"q_proj", "v_proj"}));
  EXPECT_EQ(config_with("all-linear").target_modules, Names{"all-linear"});
  EXPECT_EQ(config_with("all-linear").target_pattern, "");
  const LoraConfig pattern = config_with(".*_proj");
  EXPECT_EQ(pattern.target_pattern, ".*_proj");
  EXPECT_TRUE(pattern.target_modules.empty());
}

TEST(LoraConfig, WhatIsWrittenIsReadAgain) {
  const LoraConfig all{.rank = 4,
                       .alpha = 12.5,
                       .rank_stabilized = true,
                       .dropout = 0.25,
                       .target_modules = {},
                       .target_pattern = ".*_proj",
                       .exclude_modules = {"down_proj"},
                       .layers = {1, 3},
                       .rank_pattern = {{"z_first", 2}, {"a_second", 16}},
                       .alpha_pattern = {{"z_first", 3.5}},
                       .base_model = "some/model"};
  for (const LoraConfig& config : {all, LoraConfig()}) {
    const auto again = LoraConfig::from_json(config.to_json(), "adapter_config.json");
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(*again, config) << config.to_json();
  }
}

TEST(LoraConfig, ValuesOutOfRangeAreRefusedByTheFilesNames) {
  const auto refused = [](const LoraConfig& config, const std::string& named) {
    support::expect_failure(config.validate(), ErrorCode::kInvalidArgument, {"LoRA: " + named});
  };
  const double infinite = std::numeric_limits<double>::infinity();
  refused({.rank = (1 << 16) + 1}, "r must be");
  refused({.alpha = infinite}, "lora_alpha");
  refused({.dropout = -0.1}, "lora_dropout");
  refused({.target_modules = {}}, "target_modules");
  refused({.target_modules = {"q"}, .target_pattern = "q"}, "target_modules");
  refused({.rank_pattern = {{"q_proj", 0}}}, "rank_pattern of q_proj");
  refused({.alpha_pattern = {{"q_proj", infinite}}}, "alpha_pattern of q_proj");
}

TEST(LoraConfig, AFileIsReadFromItsFolderAndItsDamageNamesIt) {
  const support::TemporaryFolder folder;
  support::expect_failure(LoraConfig::load(folder.path()).status(), ErrorCode::kNotFound,
                          {folder.file("adapter_config.json") + ": missing"});
  std::ofstream(folder.file("adapter_config.json")) << R"({"peft_type": "LORA")";
  support::expect_failure(LoraConfig::load(folder.path()).status(), ErrorCode::kInvalidArgument,
                          {folder.file("adapter_config.json") + ": not valid JSON"});
  std::ofstream(folder.file("adapter_config.json")) << LoraConfig{.rank = 3}.to_json();
  for (const auto& path : {folder.path(), folder.path() / "adapter_config.json"}) {
    const auto config = LoraConfig::load(path);
    ASSERT_TRUE(config.ok()) << config.status().to_string();
    EXPECT_EQ(config->rank, 3);
  }
}

}  // namespace
}  // namespace rl
