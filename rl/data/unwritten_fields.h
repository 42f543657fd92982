// Fields of messages that a chat template leaves out.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/data/data_row.h"
#include "runtime/core/result.h"

namespace rl {

/// By the field's name what to say of it, to people, and what to do.
using UnwrittenFields = std::map<std::string, std::string>;

using RenderMessages =
    std::function<runtime::Result<std::string>(const nlohmann::ordered_json& messages)>;

/// Of calls of tools and reasoning, what `render` makes nothing of. `where` names the messages,
/// `template_key` what sets another template.
UnwrittenFields unwritten_message_fields(const nlohmann::ordered_json& messages,
                                         const std::string& where, const char* template_key,
                                         const RenderMessages& render);

/// Adds the row's tools, if `render` makes nothing of them.
void add_unwritten_tools(const DataRow& row, const char* template_key,
                         const std::function<runtime::Result<std::string>(const DataRow&)>& render,
                         UnwrittenFields& unwritten);

}  // namespace rl
