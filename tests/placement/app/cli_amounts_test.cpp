#include "placement/app/cli_amounts.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace placement {
namespace {

using runtime::ErrorCode;
using runtime::ResourceMap;

runtime::Status refusal(const CliAmounts& amounts) {
  ResourceMap resources;
  return add_resources(amounts, resources);
}

TEST(CliAmounts, WhatIsGivenReplacesWhatIsThereAndZeroTakesItAway) {
  ResourceMap resources{{"CPU", 8}, {"GPU", 2}, {"memory", 1e9}};
  const auto added = add_resources(
      {.cpus = 0.0, .gpus = 1.0, .resources = R"({"memory": 0, "disk": 1.5})"}, resources);
  ASSERT_TRUE(added.ok()) << added.to_string();
  EXPECT_EQ(resources, (ResourceMap{{"GPU", 1}, {"disk", 1.5}}));
}

TEST(CliAmounts, MistakesAreNamedByTheirOption) {
  using support::expect_failure;
  const auto others = [](const char* text) { return refusal({.resources = text}); };
  for (const char* text : {"", "x", "[1]", "7"})
    expect_failure(others(text), ErrorCode::kInvalidArgument, {"--resources", "no", text});
  expect_failure(others(R"({"disk": 1, "disk": 2})"), ErrorCode::kInvalidArgument,
                 {"--resources has 'disk' twice"});
  expect_failure(others(R"({"disk": "1"})"), ErrorCode::kInvalidArgument,
                 {"--resources: 'disk' is not a number"});
  expect_failure(others(R"({"disk": -1})"), ErrorCode::kInvalidArgument, {"disk"});
  expect_failure(refusal({.cpus = 1.0, .resources = R"({"CPU": 1})"}), ErrorCode::kInvalidArgument,
                 {"'CPU' is given by --num-cpus already"});
  expect_failure(refusal({.gpus = 1.0, .resources = R"({"GPU": 1})"}), ErrorCode::kInvalidArgument,
                 {"'GPU' is given by --num-gpus already"});
}

TEST(CliAmounts, KnowsWhichResourcesAreNamed) {
  EXPECT_TRUE(names({.resources = R"({"GPU": 0})"}, "GPU"));
  EXPECT_FALSE(names({.resources = R"({"disk": 1})"}, "GPU"));
  EXPECT_FALSE(names({.resources = R"({"GPU": )"}, "GPU"));
  EXPECT_FALSE(names({.gpus = 1.0}, "GPU")) << "by a separate option";
}

TEST(CliAmounts, ALabelEndsAtItsFirstEqualsSign) {
  const auto labels = parse_labels("--label", {"zone=a", "rule=x=y", "empty="});
  ASSERT_TRUE(labels.ok()) << labels.status().to_string();
  EXPECT_EQ(*labels, (runtime::Labels{{"zone", "a"}, {"rule", "x=y"}, {"empty", ""}}));
  for (const char* line : {"zone", "=a", ""})
    support::expect_failure(parse_labels("--label", {line}).status(), ErrorCode::kInvalidArgument,
                            {std::string("--label is not KEY=VALUE: ") + line});
  support::expect_failure(parse_labels("--label", {"zone=a", "zone=a"}).status(),
                          ErrorCode::kInvalidArgument, {"--label zone is given twice"});
}

}  // namespace
}  // namespace placement
