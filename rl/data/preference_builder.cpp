#include "rl/data/preference_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rl/data/tool_calls.h"
#include "rl/data/unwritten_fields.h"

namespace rl {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

std::int64_t PreferenceTokens::longest() const {
  return static_cast<std::int64_t>(prompt.size() + std::max(chosen.size(), rejected.size()));
}

Result<PreferenceBuilder> PreferenceBuilder::create(const Tokenizer& tokenizer,
                                                    const SequenceOptions& options) {
  if (options.truncation == Truncation::kMiddle)
    return invalid_argument(
        "data.truncation=middle does not go with preferences: use error, left or right");
  PromptOptions prompt;
  prompt.prompt_tokens_max =
      std::numeric_limits<std::int64_t>::max();  // cut together with its responses
  prompt.chat_template = options.chat_template;
  prompt.template_variables = options.template_variables;
  Result<PromptBuilder> prompts = PromptBuilder::create(tokenizer, prompt);
  if (!prompts.ok()) return prompts.status();
  return PreferenceBuilder(tokenizer, options, std::move(*prompts));
}

Result<PreferenceTokens> PreferenceBuilder::tokenize(const DataRow& row) const {
  if (!row.preference) return invalid_argument(row.where + ": the row has no preference");
  PreferenceTokens tokens;
  Result<std::vector<std::int32_t>> ids = prompts_.ids(row);
  if (!ids.ok()) return ids.status();
  tokens.prompt = std::move(*ids);
  ids = response(row, row.preference->chosen);
  if (!ids.ok()) return ids.status();
  tokens.chosen = std::move(*ids);
  if (row.preference->is_pair()) {
    ids = response(row, row.preference->rejected);
    if (!ids.ok()) return ids.status();
    tokens.rejected = std::move(*ids);
  }
  tokens.margin = row.preference->margin;
  tokens.wanted = row.preference->wanted;
  if (const Status status = cut(row, tokens); !status.ok()) return status;
  if (tokens.chosen == tokens.rejected)
    return invalid_argument(
        row.where + ": both responses are the same tokens once they are cut to data.max_length=" +
        std::to_string(options_.tokens_max) +
        ": raise it (data.truncation=left cuts prompts first)");
  return tokens;
}

UnwrittenFields PreferenceBuilder::unwritten_fields(const DataRow& row) const {
  UnwrittenFields unwritten;
  if (!row.is_chat() || !row.preference) return unwritten;
  for (const ordered_json& response : {row.preference->chosen, row.preference->rejected}) {
    DataRow whole = row;
    if (response.is_array())
      whole.prompt.insert(whole.prompt.end(), response.begin(), response.end());
    unwritten.merge(prompts_.unwritten_fields(whole, "model.custom_chat_template"));
  }
  return unwritten;
}

Result<std::vector<std::int32_t>> PreferenceBuilder::response(
    const DataRow& row, const nlohmann::ordered_json& response) const {
  const bool is_text = response.is_string();
  const Result<std::string> text =
      is_text ? Result<std::string>(response.get<std::string>()) : messages_behind(row, response);
  if (!text.ok()) return text.status();
  Result<std::vector<std::int32_t>> ids = tokenizer_->encode(*text, /*add_special_tokens=*/false);
  if (!ids.ok()) return ids.status().with_context(row.where);
  const auto eos = tokenizer_->eos_id();
  if (is_text && eos && (ids->empty() || ids->back() != *eos)) ids->push_back(*eos);
  if (ids->empty()) return invalid_argument(row.where + ": a response is empty");
  return ids;
}

// The rendered prompt ends where the model is asked to go on; everything behind it is the response.
Result<std::string> PreferenceBuilder::messages_behind(
    const DataRow& row, const nlohmann::ordered_json& messages) const {
  const Result<std::string> before = prompts_.text(row);
  if (!before.ok()) return before;
  DataRow whole;
  whole.where = row.where;
  whole.prompt = row.prompt;
  whole.tools = row.tools;
  for (const nlohmann::ordered_json& message : messages) whole.prompt.push_back(message);
  const Result<std::string> all = prompts_.text(whole, /*asks=*/false);
  if (!all.ok()) return all;
  if (!all->starts_with(*before)) {
    return invalid_argument(
        row.where +
        ": the chat template writes the prompt differently once a response follows it: give "
        "responses of one message as texts, or another model.custom_chat_template");
  }
  const ordered_json& last = whole.prompt.back();
  if (last.at("role") == "assistant" && only_calls_tools(last)) {
    whole.prompt = without_field(std::move(whole.prompt), kToolCalls);
    const Result<std::string> callless = prompts_.text(whole, /*asks=*/false);
    if (callless.ok() && *callless == *all)
      return calls_not_written(row.where + ": the last message of a response");
  }
  return all->substr(before->size());
}

Status PreferenceBuilder::cut(const DataRow& row, PreferenceTokens& tokens) const {
  const auto size = [](const std::vector<std::int32_t>& ids) {
    return static_cast<std::int64_t>(ids.size());
  };
  const std::int64_t longest = std::max(size(tokens.chosen), size(tokens.rejected));
  const std::int64_t whole = size(tokens.prompt) + longest;
  const std::int64_t most = options_.tokens_max;
  if (whole <= most) return {};
  if (options_.truncation == Truncation::kError) {
    return invalid_argument(row.where + ": prompt and response have " + std::to_string(whole) +
                            " tokens, data.max_length is " + std::to_string(most) +
                            ": raise it, or set data.truncation=left|right");
  }
  // Both responses keep the same prompt, of which at least one token is left.
  if (options_.truncation == Truncation::kLeft) {
    const std::int64_t left = std::max<std::int64_t>(1, most - longest);
    if (left < size(tokens.prompt))
      tokens.prompt.erase(tokens.prompt.begin(), tokens.prompt.end() - left);
  }
  const std::int64_t room = most - size(tokens.prompt);
  if (room < 1) {
    return invalid_argument(
        row.where + ": the prompt has " + std::to_string(size(tokens.prompt)) +
        " tokens and leaves no room for a response in data.max_length=" + std::to_string(most) +
        ": raise it (data.truncation=left cuts prompts first)");
  }
  for (std::vector<std::int32_t>* response : {&tokens.chosen, &tokens.rejected}) {
    if (size(*response) > room) response->resize(static_cast<std::size_t>(room));
  }
  return {};
}

}  // namespace rl
