// Calls of tools in what a model wrote. Text in, values out.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct ToolCall {
  std::string name;
  nlohmann::ordered_json arguments;  // what the model gave: an object, if it knows the rules

  bool operator==(const ToolCall&) const = default;
};

/// A turn of the model, taken apart.
struct AssistantTurn {
  std::string content;  // without the calls
  std::vector<ToolCall> calls;
  std::int64_t unreadable = 0;  // calls that are none: left out
};

/// How a model writes its calls, as verl's `multi_turn.format` names it.
enum class ToolFormat {
  kHermes,  // "hermes": <tool_call>{"name": NAME, "arguments": {...}}</tool_call>, as many as it
            // likes
};

/// kUnimplemented: a format of verl's that is not read here; kInvalidArgument: an unknown one.
runtime::Result<ToolFormat> parse_tool_format(std::string_view name);

AssistantTurn read_turn(ToolFormat format, std::string_view text);

}  // namespace rl
