#include "rl/data/prompt_builder.h"

#include <utility>

#include "rl/data/tool_selection.h"
#include "rl/data/unwritten_fields.h"

namespace rl {

using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

Result<Truncation> parse_truncation(std::string_view name) {
  if (name == "error") return Truncation::kError;
  if (name == "left") return Truncation::kLeft;
  if (name == "right") return Truncation::kRight;
  if (name == "middle") return Truncation::kMiddle;
  return invalid_argument("data.truncation: there is error, left, right and middle, not '" +
                          std::string(name) + "'");
}

Result<PromptOptions> PromptOptions::from_config(const Config& config) {
  ConfigReader read(config);
  PromptOptions options;
  options.prompt_tokens_max = read.get_int("data.max_prompt_length");
  const std::string truncation = read.get_string("data.truncation");
  options.filter_overlong = read.get_bool("data.filter_overlong_prompts");
  options.chat_template =
      read.find_string("actor_rollout_ref.model.custom_chat_template").value_or("");
  if (!read.status().ok()) return read.status();
  Result<Truncation> parsed = parse_truncation(truncation);
  if (!parsed.ok()) return parsed.status();
  options.truncation = *parsed;
  const auto* variables = config.find("data.apply_chat_template_kwargs");
  if (variables != nullptr && variables->is_object()) options.template_variables = *variables;
  return options;
}

Result<std::vector<std::int32_t>> truncate(std::vector<std::int32_t> ids, std::int64_t limit,
                                           Truncation truncation) {
  const std::int64_t count = static_cast<std::int64_t>(ids.size());
  if (count <= limit) return ids;
  switch (truncation) {
    case Truncation::kError:
      return invalid_argument("the prompt has " + std::to_string(count) +
                              " tokens, data.max_prompt_length is " + std::to_string(limit) +
                              ": raise it, or set data.truncation=left|right|middle, or "
                              "data.filter_overlong_prompts=true");
    case Truncation::kLeft: ids.erase(ids.begin(), ids.end() - limit); return ids;
    case Truncation::kRight: ids.resize(static_cast<std::size_t>(limit)); return ids;
    case Truncation::kMiddle:
      ids.erase(ids.begin() + limit / 2, ids.end() - (limit - limit / 2));
      return ids;
  }
  return ids;
}

PromptBuilder::PromptBuilder(const Tokenizer& tokenizer, PromptOptions options,
                             ChatTemplates chat_template)
    : tokenizer_(&tokenizer),
      options_(std::move(options)),
      chat_template_(std::move(chat_template)) {}

Result<PromptBuilder> PromptBuilder::create(const Tokenizer& tokenizer,
                                            const PromptOptions& options) {
  const bool custom = !options.chat_template.empty();
  Result<ChatTemplates> parsed = custom ? ChatTemplates::parse(options.chat_template)
                                        : ChatTemplates::parse(tokenizer.chat_templates());
  if (!parsed.ok())
    return parsed.status().with_context(custom ? "actor_rollout_ref.model.custom_chat_template"
                                               : "the model's chat template");
  return PromptBuilder(tokenizer, options, std::move(*parsed));
}

Result<std::string> PromptBuilder::text(const DataRow& row, bool asks) const {
  if (!row.is_chat()) return row.prompt.get<std::string>();
  if (chat_template_.empty()) {
    return invalid_argument(row.where +
                            ": the prompt is a chat, and the model has no chat template: set "
                            "actor_rollout_ref.model.custom_chat_template");
  }
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  for (const auto& [name, text] : tokenizer_->special_token_texts()) variables[name] = text;
  variables["messages"] = row.prompt;
  variables["tools"] = row.tools;
  if (!options_.tools.empty()) {
    Result<nlohmann::ordered_json> tools = selected_tools(options_.tools, row.extra);
    if (!tools.ok()) return tools.status().with_context(row.where);
    variables["tools"] = std::move(*tools);
  }
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = asks;
  for (const auto& [name, value] : options_.template_variables.items()) variables[name] = value;
  Result<std::string> rendered = chat_template_.render_chat(variables);
  if (!rendered.ok()) return rendered.status().with_context(row.where + ": chat template");
  return rendered;
}

UnwrittenFields PromptBuilder::unwritten_fields(const DataRow& row,
                                                const char* template_key) const {
  if (!row.is_chat() || chat_template_.empty()) return {};
  UnwrittenFields unwritten = unwritten_message_fields(row.prompt, row.where, template_key,
                                                       [&](const nlohmann::ordered_json& messages) {
                                                         DataRow first = row;
                                                         first.prompt = messages;
                                                         return text(first, /*asks=*/false);
                                                       });
  if (options_.tools.empty())
    add_unwritten_tools(
        row, template_key, [&](const DataRow& other) { return text(other, /*asks=*/false); },
        unwritten);
  else if (!row.tools.empty())
    unwritten["tools"] = row.where +
                         ": its tools are passed over: the prompt has those that the model can "
                         "call, of multi_turn.tool_config_path";
  return unwritten;
}

Result<std::vector<std::int32_t>> PromptBuilder::encode(const DataRow& row) const {
  const Result<std::string> prompt = text(row);
  if (!prompt.ok()) return prompt.status();
  // A template writes the special tokens itself.
  Result<std::vector<std::int32_t>> ids =
      tokenizer_->encode(*prompt, /*add_special_tokens=*/!row.is_chat());
  if (!ids.ok()) return ids.status().with_context(row.where);
  if (ids->empty())
    return invalid_argument(row.where +
                            (prompt->empty()
                                 ? ": the prompt is empty"
                                 : ": the tokenizer has no token for any character of the prompt: "
                                   "does it belong to the model, and to this language?"));
  return ids;
}

Result<std::vector<std::int32_t>> PromptBuilder::ids(const DataRow& row) const {
  Result<std::vector<std::int32_t>> all = encode(row);
  if (!all.ok()) return all;
  Result<std::vector<std::int32_t>> cut =
      truncate(std::move(all).value(), options_.prompt_tokens_max, options_.truncation);
  if (!cut.ok()) return cut.status().with_context(row.where);
  return cut;
}

Result<std::vector<std::int32_t>> PromptBuilder::response_ids(const DataRow& row) const {
  if (!row.response)
    return invalid_argument(row.where + ": the row has no 'response' to learn from");
  Result<std::vector<std::int32_t>> ids =
      tokenizer_->encode(*row.response, /*add_special_tokens=*/false);
  if (!ids.ok()) return ids.status().with_context(row.where);
  if (const auto eos = tokenizer_->eos_id()) ids->push_back(*eos);
  return ids;
}

Result<Dataset> PromptBuilder::filter(Dataset dataset, std::int64_t* dropped) const {
  if (dropped != nullptr) *dropped = 0;
  if (!options_.filter_overlong) return dataset;
  std::vector<std::int64_t> kept;
  for (std::int64_t index = 0; index < dataset.size(); ++index) {
    const Result<DataRow> row = dataset.read(index);
    if (!row.ok()) return row.status();
    const Result<std::vector<std::int32_t>> ids = encode(*row);
    if (!ids.ok()) return ids.status();
    if (static_cast<std::int64_t>(ids->size()) <= options_.prompt_tokens_max) kept.push_back(index);
  }
  if (dropped != nullptr) *dropped = dataset.size() - static_cast<std::int64_t>(kept.size());
  if (kept.empty()) {
    return invalid_argument("data.filter_overlong_prompts left no row: all " +
                            std::to_string(dataset.size()) +
                            " prompts are longer than data.max_prompt_length=" +
                            std::to_string(options_.prompt_tokens_max));
  }
  return dataset.select(kept);
}

}  // namespace rl
