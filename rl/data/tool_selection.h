// The selection of the tools that a row may use.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/core/result.h"

namespace rl {

/// `schemas`, or those of them that `extra_info.tool_selection` names, as verl's rows do. A name
/// that no schema has selects nothing. kInvalidArgument: a member of the selection that is no name,
/// or a schema that has none.
runtime::Result<nlohmann::ordered_json> selected_tools(const nlohmann::ordered_json& schemas,
                                                       const nlohmann::ordered_json& extra_info);

}  // namespace rl
