#include "rl/agent/agent_options.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

const std::string kSection = "actor_rollout_ref.rollout.multi_turn.";

runtime::Result<std::optional<AgentOptions>> read(std::vector<std::string> overrides) {
  const auto config = Config::load({.file = std::nullopt, .overrides = std::move(overrides)});
  if (!config.ok()) return config.status();
  return AgentOptions::from_config(*config);
}

TEST(AgentOptions, AreNothingUnlessSeveralTurnsAreAskedFor) {
  ASSERT_TRUE(read({}).ok());
  EXPECT_FALSE(read({})->has_value());
  EXPECT_TRUE(read({kSection + "enable=true"})->has_value());
  EXPECT_TRUE(read({"actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent"})->has_value());
}

TEST(AgentOptions, ReadVerlsKeys) {
  const auto options =
      read({kSection + "enable=true", kSection + "tool_config_path=t.yaml",
            "+" + kSection + "interaction_config_path=u.yaml", kSection + "max_assistant_turns=5",
            kSection + "max_user_turns=4", kSection + "max_parallel_calls=3",
            kSection + "max_tool_response_length=99", kSection + "tool_response_truncate_side=left",
            kSection + "tool_timeout=1.5", kSection + "num_tool_workers=2",
            kSection + "tool_memory_limit_mb=1"});
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  const AgentOptions& read = **options;
  EXPECT_EQ(read.tools, "t.yaml");
  EXPECT_EQ(read.interactions, "u.yaml");
  EXPECT_EQ(read.assistant_turns_max, 5);
  EXPECT_EQ(read.user_turns_max, 4);
  EXPECT_EQ(read.parallel_calls_max, 3);
  EXPECT_EQ(read.answer_characters_max, 99);
  EXPECT_EQ(read.truncate_side, TruncateSide::kLeft);
  EXPECT_EQ(read.timeout.count(), 1500);
  EXPECT_EQ(read.workers_max, 2);
  EXPECT_EQ(read.memory_bytes, 1 << 20);
}

TEST(AgentOptions, CustomLoopsMakeTheSamples) {
  const std::string agent = "actor_rollout_ref.rollout.agent.";
  const auto options = read({agent + "agent_loop_config_path=loops.yaml",
                             agent + "default_agent_loop=debate", "data.max_response_length=77"});
  ASSERT_TRUE(options.ok()) << options.status().to_string();
  ASSERT_TRUE(options->has_value());
  EXPECT_TRUE((*options)->custom());
  EXPECT_EQ((*options)->loops, "loops.yaml");
  EXPECT_EQ((*options)->default_loop, "debate");
  EXPECT_EQ((*options)->config.at("actor_rollout_ref").at("rollout").at("response_length"), 77);
  EXPECT_TRUE((*read({"+" + agent + "custom_agent_loop_loader=my.loader"}))->custom());
  const auto without = read({agent + "default_agent_loop=debate"});
  EXPECT_EQ(without.status().code(), runtime::ErrorCode::kInvalidArgument);
  EXPECT_NE(without.status().message().find(agent + "agent_loop_config_path"), std::string::npos);
}

TEST(AgentOptions, ErrorsNameTheKey) {
  for (const char* wrong :
       {"max_parallel_calls=0", "max_tool_response_length=0", "max_assistant_turns=-1",
        "tool_timeout=0", "num_tool_workers=0", "tool_memory_limit_mb=-1", "format=gpt-oss"}) {
    const auto options = read({kSection + "enable=true", kSection + wrong});
    ASSERT_FALSE(options.ok()) << wrong;
    const std::string key = kSection + std::string(wrong).substr(0, std::string(wrong).find('='));
    EXPECT_NE(options.status().message().find(key), std::string::npos)
        << options.status().to_string();
  }
}

}  // namespace
}  // namespace rl
