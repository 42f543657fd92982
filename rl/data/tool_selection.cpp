#include "rl/data/tool_selection.h"

#include <algorithm>

namespace rl {

using nlohmann::ordered_json;

ordered_json selected_tools(const ordered_json& schemas, const ordered_json& extra_info) {
  const auto selection =
      extra_info.is_object() ? extra_info.find("tool_selection") : extra_info.end();
  if (!extra_info.is_object() || selection == extra_info.end() || !selection->is_array() ||
      selection->empty())
    return schemas;
  ordered_json chosen = ordered_json::array();
  for (const ordered_json& schema : schemas) {
    const ordered_json name =
        schema.value(ordered_json::json_pointer("/function/name"), ordered_json());
    if (std::find(selection->begin(), selection->end(), name) != selection->end())
      chosen.push_back(schema);
  }
  return chosen;
}

}  // namespace rl
