#include "rl/data/chat_messages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rl/config/judge.h"
#include "rl/data/json_text.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

Status check_messages(const ordered_json& messages, const std::string& at) {
  if (messages.empty()) return invalid_argument(at + " is an empty list of messages");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ordered_json& message = messages[i];
    const std::string which = at + ": message " + std::to_string(i + 1);
    if (!message.is_object())
      return invalid_argument(which + " must be an object with role and content, it is " +
                              json_type_name(message));
    if (!message.contains("role")) return invalid_argument(which + " has no 'role'");
    if (!message.at("role").is_string())
      return invalid_argument(which + ": 'role' must be a text, it is " +
                              json_type_name(message.at("role")));
    const auto content = message.find("content");
    const auto tool_calls = message.find("tool_calls");
    const bool calls =
        tool_calls != message.end() && tool_calls->is_array() && !tool_calls->empty();
    if (content == message.end() && !calls) return invalid_argument(which + " has no 'content'");
    if (content != message.end() && !content->is_string() && !content->is_array() &&
        !(content->is_null() && calls)) {
      return invalid_argument(which + ": 'content' must be a text or a list of parts, it is " +
                              json_type_name(*content));
    }
    if (content == message.end() || !content->is_array()) continue;
    for (const ordered_json& part : *content) {
      const std::string type =
          part.is_object() ? part.value("type", ordered_json("text")).dump() : "\"text\"";
      if (type != "\"text\"")
        return runtime::unimplemented(which + " has a part of type " + type +
                                      ", and only text is read");
      if (part.is_object() && part.contains("text") && !part.at("text").is_string())
        return invalid_argument(which + ": the 'text' of a part must be a text, it is " +
                                json_type_name(part.at("text")));
    }
  }
  return Status();
}

/// Calls of tools in tool_calls' form, of {"name": ..., "arguments": ...} or a list of them, which
/// may be JSON text. Null when it is none.
ordered_json tool_calls_of(const ordered_json& value) {
  ordered_json calls = value;
  if (value.is_string()) {
    Result<ordered_json> parsed = parse_json_text(value.get_ref<const std::string&>(), "");
    if (!parsed.ok()) return nullptr;
    calls = std::move(*parsed);
  }
  if (calls.is_object()) calls = ordered_json::array({ordered_json(calls)});
  if (!calls.is_array() || calls.empty()) return nullptr;
  ordered_json out = ordered_json::array();
  for (const ordered_json& call : calls) {
    if (!call.is_object() || !call.contains("name") || !call.at("name").is_string()) return nullptr;
    ordered_json function = {{"name", call.at("name")},
                             {"arguments", call.value("arguments", ordered_json::object())}};
    ordered_json made = {{"type", "function"}, {"function", std::move(function)}};
    out.push_back(std::move(made));
  }
  return out;
}

/// The role of who a ShareGPT message is from; null when it is unknown.
const char* share_gpt_role(std::string_view from) {
  using Role = std::pair<std::string_view, const char*>;
  static constexpr Role kRoles[] = {
      {"human", "user"},          {"user", "user"},       {"gpt", "assistant"},
      {"chatgpt", "assistant"},   {"bing", "assistant"},  {"bard", "assistant"},
      {"assistant", "assistant"}, {"model", "assistant"}, {"system", "system"},
      {"observation", "tool"},    {"tool", "tool"},       {"tool_response", "tool"}};
  const auto role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                 [&](const Role& one) { return one.first == from; });
  return role == std::end(kRoles) ? nullptr : role->second;
}

/// Of a ShareGPT message all but `from` and `value` stays: its weight, say.
void take_role(ordered_json& message, const char* role, ordered_json content) {
  ordered_json made = {{"role", role}, {"content", std::move(content)}};
  for (const auto& [key, value] : message.items()) {
    if (key != "from" && key != "value" && !made.contains(key)) made[key] = value;
  }
  message = std::move(made);
}

/// ShareGPT's {"from": "human", "value": ...} as {"role": "user", "content": ...}; others stay.
Status rename_share_gpt(ordered_json& messages, const std::string& at) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ordered_json& message = messages[i];
    if (!message.is_object() || message.contains("role") || !message.contains("from") ||
        !message.at("from").is_string() || !message.contains("value"))
      continue;
    const std::string from = message.at("from").get<std::string>();
    const std::string which =
        at + ": message " + std::to_string(i + 1) + " is from '" + excerpt(from, 40) + "', ";
    if (from == "function_call") {
      ordered_json calls = tool_calls_of(message.at("value"));
      if (calls.is_null())
        return invalid_argument(which + "and its value is not a call with a name and arguments: " +
                                excerpt(json_as_text(message.at("value")), 80));
      message["tool_calls"] = std::move(calls);
      take_role(message, "assistant", "");
      continue;
    }
    const char* const role = share_gpt_role(from);
    if (role == nullptr)
      return invalid_argument(which +
                              "which is not a known role (human, gpt, chatgpt, bing, bard, "
                              "system, function_call, observation are): write \"role\" and "
                              "\"content\" instead");
    take_role(message, role, ordered_json(message.at("value")));
  }
  return Status();
}

/// Null, an empty value, or a struct of Parquet whose fields are all null.
bool says_nothing(const ordered_json& value) {
  return is_empty_value(value) ||
         (value.is_object() && std::all_of(value.begin(), value.end(),
                                           [](const auto& field) { return field.is_null(); }));
}

/// OpenAI's older form: `function_call` is one call, which a message of role "function" answers.
Status replace_function_calls(ordered_json& messages, const std::string& at) {
  constexpr const char* kOlder = "function_call";
  bool replaced = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ordered_json& message = messages[i];
    if (!message.is_object()) continue;
    if (replaced && message.contains("role") && message.at("role") == "function")
      message["role"] = "tool";
    const auto call = message.find(kOlder);
    if (call == message.end()) continue;
    if (!says_nothing(*call)) {
      const std::string which = at + ": message " + std::to_string(i + 1);
      ordered_json calls = tool_calls_of(*call);
      if (calls.size() != 1)
        return invalid_argument(which +
                                ": 'function_call' is not a call with a name and arguments: " +
                                excerpt(json_as_text(*call), 80));
      const auto newer = message.find("tool_calls");
      if (newer != message.end() && !is_empty_value(*newer))
        return invalid_argument(which + " has 'function_call' and 'tool_calls': keep one of them");
      message["tool_calls"] = std::move(calls);
      replaced = true;
    }
    message.erase(kOlder);
  }
  return Status();
}

}  // namespace

Status normalise_messages(ordered_json& messages, const std::string& at) {
  Status status = rename_share_gpt(messages, at);
  if (status.ok()) status = replace_function_calls(messages, at);
  if (!status.ok()) return status;
  return check_messages(messages, at);
}

ordered_json first_messages(const ordered_json& messages, std::size_t count) {
  ordered_json first = ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) first.push_back(messages[i]);
  return first;
}

}  // namespace rl
