#include "rl/data/unwritten_fields.h"

#include <algorithm>
#include <cstddef>

#include "rl/data/tool_calls.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;

UnwrittenFields unwritten_message_fields(const ordered_json& messages, const std::string& where,
                                         const char* template_key, const RenderMessages& render) {
  UnwrittenFields unwritten;
  for (const char* field : {kToolCalls, "reasoning_content"}) {
    const auto found =
        std::find_if(messages.begin(), messages.end(), [&](const ordered_json& message) {
          const auto value = message.find(field);
          return value != message.end() && !value->empty() && *value != "";
        });
    if (found == messages.end()) continue;
    // A template may leave the field out of messages that others follow.
    ordered_json first = ordered_json::array();
    for (auto message = messages.begin(); message <= found; ++message) first.push_back(*message);
    const Result<std::string> with = render(first), without = render(without_field(first, field));
    if (with.ok() && without.ok() && *with == *without)
      unwritten[field] = where + ": message " + std::to_string(first.size()) + " has '" + field +
                         "', which the chat template does not write: the model does not read it; "
                         "set " +
                         template_key + " to one that writes it, or put it into 'content'";
  }
  return unwritten;
}

void add_unwritten_tools(const DataRow& row, const char* template_key,
                         const std::function<Result<std::string>(const DataRow&)>& render,
                         UnwrittenFields& unwritten) {
  if (row.tools.empty()) return;
  DataRow toolless = row;
  toolless.tools = nullptr;
  const Result<std::string> with = render(row), without = render(toolless);
  if (with.ok() && without.ok() && *with == *without)
    unwritten["tools"] = row.where +
                         ": it has tools, which the chat template does not write: the model does "
                         "not read them. Set " +
                         template_key +
                         " to one that writes them, or describe them in a system message";
}

}  // namespace rl
