#include "rl/model/rope_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/model/json_fields.h"
#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;

// Of a model with 4096 positions, of whose heads 4 dimensions turn.
RopeConfig rope_of(const json& object, const RopeDefaults& defaults = {}) {
  JsonFields fields(object, "config.json");
  const RopeConfig rope = read_rope(fields, "config.json", 4096, 4, defaults);
  EXPECT_TRUE(fields.status().ok()) << fields.status().to_string();
  return rope;
}

runtime::Status rope_refusal(const json& scaling) {
  const json object = {{"rope_scaling", scaling}};
  JsonFields fields(object, "config.json");
  read_rope(fields, "config.json", 4096, 4);
  return fields.status();
}

TEST(RopeConfig, TheContextBeforeIsTheObjectsOrNextToIt) {
  const json yarn = {{"rope_type", "yarn"}, {"original_max_position_embeddings", 1024}};
  json object = {{"rope_scaling", yarn}};
  EXPECT_EQ(rope_of(object).original_max_position_embeddings, 1024);
  EXPECT_EQ(rope_of(object, {.original_positions = 512}).original_max_position_embeddings, 512);
  object["original_max_position_embeddings"] = 2048;
  EXPECT_EQ(rope_of(object).original_max_position_embeddings, 2048);
  EXPECT_EQ(rope_of(object).factor, 2.0)
      << "a factor that is not given is the growth of the context";
  object["rope_scaling"]["rope_type"] = "dynamic";
  object["rope_scaling"]["factor"] = 2.0;
  EXPECT_EQ(rope_of(object).original_max_position_embeddings, 4096) << "whatever it says";
}

TEST(RopeConfig, YarnsTemperatureIsOfItsFactorUnlessGiven) {
  json object = {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}};
  EXPECT_DOUBLE_EQ(rope_of(object).attention_factor, 0.1 * std::log(4.0) + 1.0);
  object["rope_scaling"]["mscale"] = 0.5;
  object["rope_scaling"]["mscale_all_dim"] = 2.0;
  EXPECT_DOUBLE_EQ(rope_of(object).attention_factor,
                   (0.05 * std::log(4.0) + 1.0) / (0.2 * std::log(4.0) + 1.0));
  EXPECT_EQ(rope_of(object).mscale_all_dim, 2.0);
  object["rope_scaling"]["attention_factor"] = 1.25;
  EXPECT_EQ(rope_of(object).attention_factor, 1.25);
  EXPECT_EQ(RopeConfig::yarn_mscale(0.5, 1.0), 1.0);
}

TEST(RopeConfig, LongRopeHasADivisorForEachPairUnderAnyOfItsNames) {
  for (const char* name : {"longrope", "su", "yarn"}) {
    json scaling = {{"type", name}, {"short_factor", {1.0, 2.0}}, {"long_factor", {4.0, 8.0}}};
    const RopeConfig rope = rope_of(json{{"rope_scaling", scaling}}, {.original_positions = 1024});
    EXPECT_EQ(rope.kind, RopeConfig::Kind::kLongRope) << name;
    EXPECT_EQ(rope.short_factors, (std::vector<float>{1.0F, 2.0F})) << name;
    EXPECT_EQ(rope.long_factors, (std::vector<float>{4.0F, 8.0F})) << name;
    EXPECT_DOUBLE_EQ(rope.attention_factor, std::sqrt(1.0 + std::log(4.0) / std::log(1024.0)))
        << name;
    scaling["long_factor"].push_back(16.0);
    support::expect_failure(rope_refusal(scaling), ErrorCode::kInvalidArgument, {"long_factor"});
  }
}

TEST(RopeConfig, FactorsThatMakeNoRampAreRefused) {
  support::expect_failure(
      rope_refusal({{"rope_type", "llama3"}, {"low_freq_factor", 4.0}, {"high_freq_factor", 4.0}}),
      ErrorCode::kUnimplemented, {"config.json: rope_scaling: high_freq_factor = 4"});
  support::expect_failure(rope_refusal({{"rope_type", "linear"}, {"factor", 0.5}}),
                          ErrorCode::kInvalidArgument, {"config.json: rope_scaling: factor"});
}

TEST(RopeConfig, WhatIsWrittenIsReadAgain) {
  RopeConfig yarn{.kind = RopeConfig::Kind::kYarn,
                  .theta = 5e5,
                  .factor = 4.0,
                  .original_max_position_embeddings = 1024,
                  .beta_fast = 16.0,
                  .beta_slow = 2.0,
                  .truncate = false,
                  .attention_factor = 1.25};
  RopeConfig dynamic{
      .kind = RopeConfig::Kind::kDynamic, .factor = 2.0, .original_max_position_embeddings = 4096};
  for (const RopeConfig& rope : {yarn, dynamic, RopeConfig{}}) {
    json object = json::object();
    write_rope(rope, object);
    EXPECT_EQ(rope_of(object), rope) << object;
  }
}

}  // namespace
}  // namespace rl
