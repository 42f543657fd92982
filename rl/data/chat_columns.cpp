#include "rl/data/chat_columns.h"

#include <utility>

#include "rl/config/judge.h"
#include "rl/data/json_text.h"
#include "rl/data/tool_list.h"
#include "runtime/core/json.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::json_member;
using runtime::Result;
using runtime::Status;

constexpr const char* kSystemColumn = "system";

std::string tools_column(const RowMapping& mapping) {
  return mapping.tools.empty() ? "tools" : mapping.tools;
}

/// Whether the row's column is something else than its name says.
bool is_taken(const RowMapping& mapping, const std::string& column) {
  for (const std::string& other : {mapping.prompt, mapping.answer, mapping.response,
                                   mapping.messages, mapping.data_source, mapping.teacher}) {
    if (column == other) return true;
  }
  return mapping.prompt_template.find("{" + column + "}") != std::string::npos;
}

/// Of the columns those that have something.
std::string list_unread(const ordered_json& row, const RowMapping& mapping) {
  ordered_json unread = ordered_json::object();
  for (const std::string& column : {tools_column(mapping), std::string(kSystemColumn)}) {
    const ordered_json* value = json_member(row, column);
    if (value != nullptr && !is_empty_value(*value) && !is_taken(mapping, column))
      unread[column] = nullptr;
  }
  return unread.empty() ? std::string() : list_json_keys(unread);
}

}  // namespace

Status add_system_message(const RawRow& row, const RowMapping& mapping, const std::string& column,
                          ordered_json& messages) {
  const ordered_json* written =
      is_taken(mapping, kSystemColumn) ? nullptr : json_member(row.value, kSystemColumn);
  if (written != nullptr && !written->is_string())
    return invalid_argument(row.where + ": 'system' must be a text, the conversation's system " +
                            "message, it is " + json_type_name(*written));
  std::string text = written == nullptr ? "" : written->get<std::string>();
  const ordered_json& first = messages.front();
  if (first.at("role") == "system") {
    if (text.empty() || first.value("content", ordered_json()) == text) return Status();
    return invalid_argument(row.where + ": 'system' is another text than the system message in '" +
                            column + "': keep one of them");
  }
  if (text.empty()) text = mapping.system_prompt;
  if (text.empty()) return Status();
  messages.insert(messages.begin(), ordered_json({{"role", "system"}, {"content", text}}));
  return Status();
}

Status read_row_tools(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  const std::string column = tools_column(mapping);
  const ordered_json* written =
      is_taken(mapping, column) ? nullptr : json_member(row.value, column);
  if (written == nullptr) return Status();
  Result<ordered_json> tools = read_tool_list(*written, row.where + ": '" + column + "'");
  if (!tools.ok()) return tools.status();
  into.tools = std::move(*tools);
  return Status();
}

Status add_chat_columns(const RawRow& row, const RowMapping& mapping, DataRow& into) {
  into.unread.clear();
  if (!into.is_chat()) {
    into.unread = list_unread(row.value, mapping);
    return Status();
  }
  if (Status status = add_system_message(row, mapping, mapping.prompt, into.prompt); !status.ok())
    return status;
  return read_row_tools(row, mapping, into);
}

}  // namespace rl
