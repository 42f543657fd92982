#include "rl/template/chat_templates.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;

namespace {

constexpr const char* kNoneText = "None";  // what Jinja writes for null

bool has_null_content(const ordered_json& message) {
  if (!message.is_object()) return false;
  const auto content = message.find("content");
  return content != message.end() && content->is_null();
}

bool lacks_content(const ordered_json& message) {
  return message.is_object() && (!message.contains("content") || has_null_content(message));
}

}  // namespace

Result<ChatTemplates> ChatTemplates::parse(const std::map<std::string, std::string>& sources) {
  ChatTemplates all;
  for (const auto& [name, source] : sources) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    if (!parsed.ok())
      return sources.size() == 1 ? parsed.status()
                                 : parsed.status().with_context("the one named " + name);
    all.by_name_.emplace(name, std::move(*parsed));
  }
  return all;
}

Result<ChatTemplates> ChatTemplates::parse(const std::string& source) {
  return parse(std::map<std::string, std::string>{{kDefaultTemplate, source}});
}

Result<std::string> ChatTemplates::render(const ordered_json& variables,
                                          const TemplateLimits& limits) const {
  const auto tools = variables.find("tools");
  return render_for(tools != variables.end() && !tools->is_null(), variables, limits);
}

Result<std::string> ChatTemplates::render_chat(const ordered_json& variables,
                                               const TemplateLimits& limits) const {
  Result<std::string> text = render(variables, limits);
  const auto given = variables.find("messages");
  if (given == variables.end() || !given->is_array() ||
      std::none_of(given->begin(), given->end(), lacks_content))
    return text;
  ordered_json tried = variables;
  if (!text.ok()) {
    const Result<std::string> filled = render_filled(tried, limits);
    if (!filled.ok()) return text;  // it was not for want of a text
    text = filled;
  }
  if (text->find(kNoneText) == text->npos) return text;
  for (ordered_json& message : tried.at("messages")) {
    if (!has_null_content(message)) continue;
    // A template that asks whether there is content writes something else for the word.
    message["content"] = kNoneText;
    const Result<std::string> as_word = render(tried, limits);
    const bool writes_null = as_word.ok() && *as_word == *text;
    message["content"] = writes_null ? ordered_json("") : ordered_json();
    if (!writes_null) continue;
    text = render(tried, limits);
    if (!text.ok()) return text;
  }
  return text;
}

Result<std::string> ChatTemplates::render_filled(ordered_json& variables,
                                                 const TemplateLimits& limits) const {
  ordered_json& messages = variables.at("messages");
  const ordered_json given = messages;
  for (ordered_json& message : messages) {
    if (lacks_content(message)) message["content"] = "";
  }
  Result<std::string> text = render(variables, limits);
  if (!text.ok()) return text;
  // Where the template asks, the message stays as it is.
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!lacks_content(given[i])) continue;
    ordered_json filled = std::exchange(messages[i], given[i]);
    Result<std::string> asked = render(variables, limits);
    if (asked.ok())
      text = std::move(asked);
    else
      messages[i] = std::move(filled);
  }
  return text;
}

Result<std::string> ChatTemplates::render_for(bool tools, const ordered_json& variables,
                                              const TemplateLimits& limits) const {
  auto found = tools ? by_name_.find(kToolUseTemplate) : by_name_.end();
  if (found == by_name_.end()) found = by_name_.find(kDefaultTemplate);
  if (found != by_name_.end()) return found->second.render(variables, limits);
  std::string names;
  for (const auto& [name, parsed] : by_name_) names += (names.empty() ? "" : ", ") + name;
  return runtime::not_found(
      "the model names its chat templates (" + names + ") and has none named default for a chat " +
      (tools ? "with" : "without") + " tools; give the text of one of them as the chat template");
}

}  // namespace rl
