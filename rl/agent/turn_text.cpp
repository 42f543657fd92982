#include "rl/agent/turn_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rl/data/tool_list.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;

namespace {

constexpr const char* kMarker = "the-turn-that-was-generated";

}  // namespace

Result<TurnText> TurnText::create(Tokenizer tokenizer, const std::string& chat_template,
                                  ordered_json variables) {
  Result<ChatTemplates> parsed = chat_template.empty()
                                     ? ChatTemplates::parse(tokenizer.chat_templates())
                                     : ChatTemplates::parse(chat_template);
  if (!parsed.ok()) return parsed.status().with_context("chat template");
  if (parsed->empty())
    return invalid_argument(
        "several turns need a chat template, and the model has none: set "
        "actor_rollout_ref.model.custom_chat_template");
  ordered_json all = ordered_json::object();
  for (const auto& [name, text] : tokenizer.special_token_texts()) all[name] = text;
  all["tools"] = nullptr;
  all["documents"] = nullptr;
  if (variables.is_object()) all.update(variables);
  return TurnText(std::move(tokenizer), std::move(*parsed), std::move(all));
}

// A conversation whose only turn of the model is a marker, rendered: what comes behind it.
// Templates show how a turn began differently once others follow (thoughts are left out, say), but
// not what is behind it.
Result<std::string> TurnText::behind_marker(const ordered_json& messages, bool asks) const {
  ordered_json variables = variables_;
  variables["messages"] = ordered_json::array(
      {{{"role", "user"}, {"content", "question"}}, {{"role", "assistant"}, {"content", kMarker}}});
  for (const ordered_json& message : messages) variables["messages"].push_back(message);
  variables["add_generation_prompt"] = asks;
  // What a tool answered belongs to a chat with tools.
  const bool tools = std::any_of(messages.begin(), messages.end(), [](const ordered_json& one) {
    return one.is_object() && one.value("role", "") == "tool";
  });
  const Result<std::string> text =
      tools ? template_.render_for(true, variables) : template_.render(variables);
  if (!text.ok()) return text.status().with_context("chat template, several turns");
  const std::size_t at = text->find(kMarker);
  if (at == text->npos)
    return invalid_argument("chat template, several turns: it leaves out what the model said");
  return text->substr(at + std::string_view(kMarker).size());
}

Result<std::string> TurnText::render(const ordered_json& messages, const ordered_json& tools,
                                     bool asks, const ordered_json& variables) const {
  const Result<ordered_json> listed = read_tool_list(tools, "apply_chat_template: 'tools'");
  if (!listed.ok()) return listed.status();
  ordered_json all = variables_;
  if (variables.is_object()) all.update(variables);
  all["messages"] = messages;
  all["tools"] = *listed;
  all["add_generation_prompt"] = asks;
  return template_.render_chat(all);
}

Result<std::vector<std::int32_t>> TurnText::between(std::int32_t last,
                                                    const ordered_json& messages) const {
  const Result<std::string> end = behind_marker(ordered_json::array(), /*asks=*/false);
  if (!end.ok()) return end.status();
  const Result<std::string> all = behind_marker(messages, /*asks=*/true);
  if (!all.ok()) return all.status();
  if (!all->starts_with(*end))
    return invalid_argument(
        "chat template, several turns: it ends a turn of the model otherwise once another message "
        "follows");
  // The model wrote the first part of the end itself, if it stopped by itself.
  const std::string said = tokenizer_.decode(std::array{last}, /*skip_special_tokens=*/false);
  const std::size_t at = said.empty() ? end->npos : end->find(said);
  return tokenizer_.encode(all->substr(at == end->npos ? 0 : at + said.size()),
                           /*add_special_tokens=*/false);
}

}  // namespace rl
