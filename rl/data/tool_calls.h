// Messages that call tools, and chat templates that do not write the calls.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/result.h"

namespace rl {

inline constexpr const char* kToolCalls = "tool_calls";

/// Whether a message has calls of tools and no text.
bool only_calls_tools(const nlohmann::ordered_json& message);

/// The messages, the last of them without a field. One that had no content has the empty text.
nlohmann::ordered_json without_field(nlohmann::ordered_json messages, const char* field);

/// kInvalidArgument, with what to do: without its calls an answer would be learned that is empty.
runtime::Status calls_not_written(const std::string& at);

}  // namespace rl
