#include "rl/data/tool_selection.h"

#include <algorithm>
#include <string>

#include "rl/data/json_text.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;

namespace {

constexpr const char* kSelection = "tool_selection";

/// Null when the schema has none.
const ordered_json* name_of(const ordered_json& schema) {
  if (!schema.is_object()) return nullptr;
  const auto function = schema.find("function");
  if (function == schema.end() || !function->is_object()) return nullptr;
  const auto name = function->find("name");
  return name != function->end() && name->is_string() ? &*name : nullptr;
}

}  // namespace

Result<ordered_json> selected_tools(const ordered_json& schemas, const ordered_json& extra_info) {
  if (!extra_info.is_object()) return schemas;
  const auto selection = extra_info.find(kSelection);
  if (selection == extra_info.end() || !selection->is_array() || selection->empty()) return schemas;
  for (std::size_t i = 0; i < selection->size(); ++i) {
    if (!selection->at(i).is_string())
      return invalid_argument("extra_info." + std::string(kSelection) + ": tool " +
                              std::to_string(i + 1) + " must be a name, it is " +
                              json_type_name(selection->at(i)));
  }
  ordered_json chosen = ordered_json::array();
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    const ordered_json* const name = name_of(schemas.at(i));
    if (name == nullptr)
      return invalid_argument("extra_info." + std::string(kSelection) +
                              " chooses tools by name, and the schema of tool " +
                              std::to_string(i + 1) + " has no function.name: it is " +
                              excerpt(json_line(schemas.at(i)), 80));
    if (std::find(selection->begin(), selection->end(), *name) != selection->end())
      chosen.push_back(schemas.at(i));
  }
  return chosen;
}

}  // namespace rl
