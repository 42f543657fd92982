#include "rl/data/sequence_options.h"

#include <gtest/gtest.h>

#include "rl/config/stage_keys.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

TEST(SequenceOptions, ComeFromTheKeysOfAStage) {
  const auto config =
      Config::load({.overrides = {"data.max_length=7", "data.truncation=right",
                                  "model.custom_chat_template='{{ messages }}'",
                                  "+data.apply_chat_template_kwargs.enable_thinking=false"},
                    .keys = &sft_keys()});
  ASSERT_TRUE(config.ok()) << config.status().to_string();
  const auto options = SequenceOptions::from_config(*config);
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  EXPECT_EQ(options->tokens_max, 7);
  EXPECT_EQ(options->truncation, Truncation::kRight);
  EXPECT_EQ(options->chat_template, "{{ messages }}");
  EXPECT_EQ(options->template_variables.at("enable_thinking"), false);
}

// As from a driver, whose values this process does not check again.
TEST(SequenceOptions, ValuesThatNobodyCheckedAreChecked) {
  const auto of = [](const char* data) {
    return SequenceOptions::from_config(
        Config(ConfigValues{.tree = {{"data", ordered_json::parse(data)}}}));
  };
  const auto bare =
      of(R"({"max_length": 7, "truncation": "left", "apply_chat_template_kwargs": null})");
  ASSERT_TRUE(bare.ok()) << bare.status().to_string();
  EXPECT_EQ(bare->chat_template, "");
  EXPECT_EQ(bare->template_variables, ordered_json::object()) << "templates look names up in it";
  support::expect_failure(of(R"({"max_length": 7, "truncation": "centre"})").status(),
                          runtime::ErrorCode::kInvalidArgument, {"data.truncation", "'centre'"});
  support::expect_failure(of(R"({"max_length": "seven", "truncation": "left"})").status(),
                          runtime::ErrorCode::kInvalidArgument, {"data.max_length"});
}

}  // namespace
}  // namespace rl
