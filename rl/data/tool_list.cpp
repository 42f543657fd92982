#include "rl/data/tool_list.h"

#include <algorithm>
#include <utility>

#include "rl/data/json_text.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;

namespace {

bool is_list_of_objects(const ordered_json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(),
                                         [](const ordered_json& one) { return one.is_object(); });
}

/// A column of texts has a tool's JSON text in each.
ordered_json with_read_members(ordered_json tools, const std::string& at) {
  for (ordered_json& tool : tools) {
    if (!tool.is_string()) continue;
    if (Result<ordered_json> parsed = parse_json_text(tool.get<std::string>(), at);
        parsed.ok() && parsed->is_object())
      tool = std::move(*parsed);
  }
  return tools;
}

std::string describe(const ordered_json& value) {
  if (value.is_array()) return "a list with another member";
  return value.is_string() ? "the text '" + excerpt(value.get<std::string>(), 60) + "'"
                           : json_type_name(value);
}

}  // namespace

Result<ordered_json> read_tool_list(const ordered_json& written, const std::string& at) {
  ordered_json tools = written;
  if (written.is_string()) {
    const std::string& text = written.get_ref<const std::string&>();
    if (text.find_first_not_of(" \t\r\n") == text.npos) return ordered_json();
    if (Result<ordered_json> parsed = parse_json_text(text, at);
        parsed.ok() && (parsed->is_array() || parsed->is_null() || parsed->empty()))
      tools = std::move(*parsed);
  }
  if (tools.is_object() && tools.empty()) return ordered_json();
  if (tools.is_array()) tools = with_read_members(std::move(tools), at);
  if (tools.is_null() || is_list_of_objects(tools)) return tools;
  return runtime::invalid_argument(
      at +
      " must be a list of objects, which describe a tool each, or the JSON text of such a "
      "list; it is " +
      describe(tools));
}

}  // namespace rl
