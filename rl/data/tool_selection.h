// The selection of the tools that a row may use.
#pragma once

#include <nlohmann/json.hpp>

namespace rl {

/// `schemas`, or those of them that `extra_info.tool_selection` names, as verl's rows do.
nlohmann::ordered_json selected_tools(const nlohmann::ordered_json& schemas,
                                      const nlohmann::ordered_json& extra_info);

}  // namespace rl
