#include "rl/agent/agent_options.h"

#include <cmath>
#include <string>

namespace rl {

using runtime::Result;

Result<std::optional<AgentOptions>> AgentOptions::from_config(const Config& config) {
  const std::string rollout = "actor_rollout_ref.rollout.";
  const std::string section = rollout + "multi_turn.";
  ConfigReader read(config);
  const bool enabled = read.get_bool(section + "enable");
  AgentOptions options;
  options.default_loop = read.get_string(rollout + "agent.default_agent_loop");
  options.loops = read.find_string(rollout + "agent.agent_loop_config_path").value_or("");
  options.loop_loader = read.find_string(rollout + "agent.custom_agent_loop_loader").value_or("");
  if (!read.status().ok()) return read.status();
  const bool built_in =
      options.default_loop == "single_turn_agent" || options.default_loop == "tool_agent";
  if (!options.custom() && !built_in) {
    return runtime::invalid_argument(rollout + "agent.default_agent_loop is " +
                                     options.default_loop + ", a custom class: name its file in " +
                                     rollout + "agent.agent_loop_config_path");
  }
  if (!enabled && options.default_loop != "tool_agent" && !options.custom())
    return std::optional<AgentOptions>();
  if (options.custom()) options.config = config.to_json();
  options.tools = read.find_string(section + "tool_config_path").value_or("");
  options.interactions = read.find_string(section + "interaction_config_path").value_or("");
  options.assistant_turns_max = read.find_int(section + "max_assistant_turns").value_or(0);
  options.user_turns_max = read.find_int(section + "max_user_turns").value_or(0);
  options.parallel_calls_max = read.get_int(section + "max_parallel_calls");
  options.answer_characters_max = read.get_int(section + "max_tool_response_length");
  options.workers_max = read.get_int(section + "num_tool_workers");
  const double timeout = read.get_float(section + "tool_timeout");
  const std::int64_t memory = read.get_int(section + "tool_memory_limit_mb");
  const std::string side = read.get_string(section + "tool_response_truncate_side");
  const std::string format = read.get_string(section + "format");
  if (!read.status().ok()) return read.status();
  options.timeout = std::chrono::milliseconds(std::llround(timeout * 1000));
  options.memory_bytes = memory << 20;
  options.truncate_side = side == "left"    ? TruncateSide::kLeft
                          : side == "right" ? TruncateSide::kRight
                                            : TruncateSide::kMiddle;
  const Result<ToolFormat> parsed = parse_tool_format(format);
  if (!parsed.ok()) return parsed.status().with_context(section + "format");
  options.format = *parsed;
  return std::optional<AgentOptions>(std::move(options));
}

}  // namespace rl
