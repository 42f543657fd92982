#include "rl/template/chat_templates.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::Result;

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
