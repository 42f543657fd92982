// Options of conversations of several turns: `actor_rollout_ref.rollout.multi_turn` and `.agent`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/agent/tool_call.h"
#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Which end of a long answer of a tool is left out.
enum class TruncateSide { kLeft, kRight, kMiddle };

struct AgentOptions {
  ToolFormat format = ToolFormat::kHermes;
  std::filesystem::path tools;         // `tool_config_path`; empty: none
  std::filesystem::path interactions;  // `interaction_config_path`; empty: none
  std::filesystem::path loops;  // `agent.agent_loop_config_path`: custom classes; empty: none
  std::string loop_loader;   // `agent.custom_agent_loop_loader`: module.function that gives such a
                             // class; empty: none
  std::string default_loop;  // of rows that name none
  nlohmann::ordered_json config;         // all of the configuration, where there are such classes
  std::int64_t assistant_turns_max = 0;  // 0: no limit but the response's length
  std::int64_t user_turns_max = 0;       // of tools and users; the same
  std::int64_t parallel_calls_max = 1;   // of one turn: the rest is not done
  std::int64_t answer_characters_max = 256;  // of a tool
  TruncateSide truncate_side = TruncateSide::kMiddle;
  std::int64_t workers_max = 8;               // processes at work at once
  std::chrono::milliseconds timeout{30'000};  // of a call
  std::int64_t memory_bytes = 0;              // of a process's address space; 0: no limit

  /// Whether custom classes make the samples; tools and users are then their business.
  bool custom() const { return !loops.empty() || !loop_loader.empty(); }

  /// Nothing where one turn is all there is: without `multi_turn.enable`,
  /// `agent.default_agent_loop=tool_agent` and custom classes. kInvalidArgument: a value out
  /// of range, by key; kUnimplemented: what is not built, by key.
  static runtime::Result<std::optional<AgentOptions>> from_config(const Config& config);
};

}  // namespace rl
