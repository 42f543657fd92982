// The tools that a row gives to a chat template.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// A list of objects, which may be written as JSON text, as LLaMA-Factory and ms-swift do, it or
/// each of its members; null where there is nothing. kInvalidArgument: something else, of which a
/// template would make no tools; `at` begins the error.
runtime::Result<nlohmann::ordered_json> read_tool_list(const nlohmann::ordered_json& written,
                                                       const std::string& at);

}  // namespace rl
