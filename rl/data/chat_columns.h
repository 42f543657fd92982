// Columns `tools` and `system` of a row: what a chat template gets besides the messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rl/data/data_row.h"
#include "rl/data/row_mapping.h"
#include "rl/data/row_source.h"
#include "runtime/core/result.h"

namespace rl {

/// Gives a chat that has no system message one. It is the text of the row's column `system`, as
/// LLaMA-Factory has it next to ShareGPT's messages, or data.system_prompt. `messages`, which are
/// not empty, stand in `column`. kInvalidArgument: the column is no text, or another text than the
/// chat's own system message.
runtime::Status add_system_message(const RawRow& row, const RowMapping& mapping,
                                   const std::string& column, nlohmann::ordered_json& messages);

/// Sets the row's tools from their column. kInvalidArgument: they are no list of objects.
runtime::Status read_row_tools(const RawRow& row, const RowMapping& mapping, DataRow& into);

/// Both, where the prompt is a chat and no column is read as something else; of a prompt that is
/// plain text they are DataRow::unread. May be called again once the prompt is another.
runtime::Status add_chat_columns(const RawRow& row, const RowMapping& mapping, DataRow& into);

}  // namespace rl
