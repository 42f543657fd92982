// Messages of chats in the forms that data have them.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// ShareGPT's {"from", "value"} become {"role", "content"}, what else a message has stays, and a
/// `function_call` becomes the one call in `tool_calls`. kInvalidArgument: no messages, one without
/// a role or content, or a call that is none; `at` begins the error.
runtime::Status normalise_messages(nlohmann::ordered_json& messages, const std::string& at);

/// The first `count` of them.
nlohmann::ordered_json first_messages(const nlohmann::ordered_json& messages, std::size_t count);

}  // namespace rl
