// The tools that a row gives to a chat template.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/result.h"

namespace rl {

/// A list of objects; null where there is nothing. It, or each of its members, may be written as
/// JSON text, as LLaMA-Factory and ms-swift do. kInvalidArgument: something else, of which a
/// template would make no tools; `at` begins the error.
runtime::Result<nlohmann::ordered_json> read_tool_list(const nlohmann::ordered_json& written,
                                                       const std::string& at);

}  // namespace rl
