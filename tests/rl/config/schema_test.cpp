#include "rl/config/schema.h"

#include <gtest/gtest.h>

#include <string>

#include "rl/config/keys.h"

namespace rl {
namespace {

/// The schema of a dotted key; null where there is none.
nlohmann::ordered_json schema_of(const nlohmann::ordered_json& root, std::string_view key) {
  const nlohmann::ordered_json* at = &root;
  for (std::size_t start = 0, dot = 0; dot != std::string_view::npos; start = dot + 1) {
    dot = key.find('.', start);
    const std::string part(key.substr(start, dot == std::string_view::npos ? dot : dot - start));
    if (part == "*" && at->contains("additionalProperties") &&
        at->at("additionalProperties").is_object()) {
      at = &at->at("additionalProperties");
      continue;
    }
    if (!at->contains("properties") || !at->at("properties").contains(part)) return nullptr;
    at = &at->at("properties").at(part);
  }
  return *at;
}

TEST(ConfigSchema, HasEveryKeyWithADescription) {
  const auto schema = config_schema();
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const KeyInfo& row : known_keys()) {
    const auto key = schema_of(schema, row.key);
    ASSERT_TRUE(key.is_object()) << row.key;
    EXPECT_NE(key.value("description", ""), "") << row.key;
  }
}

TEST(ConfigSchema, SaysTypeDefaultAndChoices) {
  const auto schema = config_schema();
  const auto batch = schema_of(schema, "data.train_batch_size");
  EXPECT_EQ(batch["default"], 1024);
  EXPECT_EQ(batch["anyOf"][0]["type"], "integer");
  EXPECT_EQ(batch["anyOf"][0]["minimum"], 1);
  EXPECT_EQ(batch["description"], "prompts a step");
  const auto share = schema_of(schema, "actor_rollout_ref.rollout.top_p")["anyOf"][0];
  EXPECT_EQ(share["exclusiveMinimum"], 0);
  EXPECT_EQ(share["maximum"], 1);
  EXPECT_EQ(
      schema_of(schema,
                "actor_rollout_ref.actor.optim.betas")["anyOf"][0]["items"]["exclusiveMaximum"],
      1);
  EXPECT_EQ(schema_of(schema, "data.truncation")["anyOf"][0]["enum"],
            nlohmann::ordered_json({"error", "left", "right", "middle"}));
  EXPECT_EQ(schema_of(schema, "actor_rollout_ref.actor.clip_ratio_low")["default"],
            0.2);  // references resolved
}

TEST(ConfigSchema, MarksWhatHasNoEffectAndOlderNames) {
  const auto schema = config_schema();
  EXPECT_EQ(schema_of(schema, "actor_rollout_ref.rollout.enforce_eager")["deprecated"], true);
  EXPECT_FALSE(schema_of(schema, "data.shuffle").contains("deprecated"));
  EXPECT_EQ(schema_of(schema, "trainer.max_steps")["deprecated"], true);
  EXPECT_EQ(schema_of(schema, "custom_reward_function")["deprecated"], true);
}

TEST(ConfigSchema, SectionsAreClosedAndMapsAreOpen) {
  const auto schema = config_schema();
  EXPECT_EQ(schema_of(schema, "data")["additionalProperties"], false);
  const auto map = schema_of(schema, "data.apply_chat_template_kwargs");
  EXPECT_FALSE(map.contains("additionalProperties"));
  EXPECT_TRUE(map["properties"].contains("enable_thinking"));
  EXPECT_FALSE(schema_of(schema, "actor_rollout_ref.rollout.engine_kwargs.vllm")
                   .contains("additionalProperties"));
}

}  // namespace
}  // namespace rl
