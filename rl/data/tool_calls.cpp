#include "rl/data/tool_calls.h"

#include <algorithm>

namespace rl {

using nlohmann::ordered_json;

namespace {

bool is_blank(const ordered_json& part) {
  if (part.is_string()) return part.get_ref<const std::string&>().empty();
  return part.is_object() && part.value("text", ordered_json("")) == "";
}

}  // namespace

bool only_calls_tools(const ordered_json& message) {
  const auto calls = message.find(kToolCalls);
  if (calls == message.end() || !calls->is_array() || calls->empty()) return false;
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return true;
  return content->is_array() ? std::all_of(content->begin(), content->end(), is_blank)
                             : is_blank(*content);
}

ordered_json without_field(ordered_json messages, const char* field) {
  ordered_json& last = messages.back();
  last.erase(field);
  if (!last.contains("content") || last.at("content").is_null()) last["content"] = "";
  return messages;
}

runtime::Status calls_not_written(const std::string& at) {
  return runtime::invalid_argument(
      at +
      " has 'tool_calls' and no text, and the chat template does not write the calls: an empty "
      "answer would be learned. Set model.custom_chat_template to one that writes them, or put the "
      "call into 'content' as text");
}

}  // namespace rl
