#include "rl/data/conversation_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rl/data/chat_messages.h"
#include "rl/data/tool_calls.h"
#include "rl/data/unwritten_fields.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using runtime::invalid_argument;
using runtime::Result;
using runtime::Status;

bool is_assistant(const ordered_json& message) { return message.at("role") == "assistant"; }

bool is_learned(const ordered_json& message) {
  const auto weight = message.find("weight");
  return is_assistant(message) && (weight == message.end() || *weight != 0);
}

std::size_t common_prefix(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(
      std::mismatch(a.begin(),
                    a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
}

std::string message_name(const DataRow& row, std::size_t index) {
  return row.where + ": message " + std::to_string(index + 1);
}

}  // namespace

std::int64_t LearnedTokens::count() const { return std::count(learned.begin(), learned.end(), 1); }

Result<ConversationBuilder> ConversationBuilder::create(const Tokenizer& tokenizer,
                                                        const ConversationOptions& options) {
  const PromptOptions prompt_options{.prompt_tokens_max = std::numeric_limits<std::int64_t>::max(),
                                     .truncation = Truncation::kError,
                                     .filter_overlong = false,
                                     .chat_template = options.sequence.chat_template,
                                     .template_variables = options.sequence.template_variables};
  Result<PromptBuilder> prompts = PromptBuilder::create(tokenizer, prompt_options);
  if (!prompts.ok()) return prompts.status();
  Result<ChatTemplates> chat_template = options.sequence.chat_template.empty()
                                            ? ChatTemplates::parse(tokenizer.chat_templates())
                                            : ChatTemplates::parse(options.sequence.chat_template);
  if (!chat_template.ok()) return chat_template.status().with_context("chat template");
  return ConversationBuilder(tokenizer, options, std::move(*prompts), std::move(*chat_template));
}

Result<LearnedTokens> ConversationBuilder::tokenize(const DataRow& row) const {
  Result<LearnedTokens> tokens = row.response ? prompt_and_response(row) : conversation(row);
  if (!tokens.ok()) return tokens;
  tokens->learned.front() = 0;
  return cut(std::move(*tokens), row);
}

Result<LearnedTokens> ConversationBuilder::prompt_and_response(const DataRow& row) const {
  Result<std::vector<std::int32_t>> prompt = prompts_.ids(row);
  if (!prompt.ok()) return prompt.status();
  const Result<std::vector<std::int32_t>> response = prompts_.response_ids(row);
  if (!response.ok()) return response.status();
  LearnedTokens tokens{.ids = std::move(*prompt), .learned = {}};
  tokens.learned.assign(tokens.ids.size(), 0);
  tokens.ids.insert(tokens.ids.end(), response->begin(), response->end());
  tokens.learned.resize(tokens.ids.size(), 1);
  return tokens;
}

Result<std::string> ConversationBuilder::render(const DataRow& row, const ordered_json& messages,
                                                bool asks) const {
  ordered_json variables = ordered_json::object();
  for (const auto& [name, text] : tokenizer_->special_token_texts()) variables[name] = text;
  variables["messages"] = messages;
  variables["tools"] = row.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = asks;
  for (const auto& [name, value] : options_.sequence.template_variables.items())
    variables[name] = value;
  if (options_.thinking_given) variables["enable_thinking"] = options_.thinking;
  if (row.extra.is_object() && row.extra.contains("enable_thinking") &&
      row.extra.at("enable_thinking").is_boolean())
    variables["enable_thinking"] = row.extra.at("enable_thinking");
  Result<std::string> rendered = chat_template_.render_chat(variables);
  if (!rendered.ok()) return rendered.status().with_context(row.where + ": chat template");
  return rendered;
}

Result<std::string> ConversationBuilder::render_without(const DataRow& row, ordered_json messages,
                                                        const char* field) const {
  return render(row, without_field(std::move(messages), field), false);
}

Status ConversationBuilder::check_calls_written(const DataRow& row, const ordered_json& messages,
                                                const std::string& rendered,
                                                const std::string& at) const {
  if (!is_learned(messages.back()) || !only_calls_tools(messages.back())) return Status();
  const Result<std::string> without = render_without(row, messages, kToolCalls);
  if (!without.ok() || *without != rendered) return Status();
  return calls_not_written(at);
}

UnwrittenFields ConversationBuilder::unwritten_fields(const DataRow& row) const {
  if (!row.is_chat() || chat_template_.empty()) return {};
  UnwrittenFields unwritten = unwritten_message_fields(
      row.prompt, row.where, "model.custom_chat_template",
      [&](const ordered_json& messages) { return render(row, messages, false); });
  add_unwritten_tools(
      row, "model.custom_chat_template",
      [&](const DataRow& other) { return render(other, other.prompt, false); }, unwritten);
  return unwritten;
}

Result<std::size_t> ConversationBuilder::answer_begin(const DataRow& row, std::size_t index,
                                                      const std::string& rendered) const {
  const Result<std::string> before = render(row, first_messages(row.prompt, index), true);
  if (!before.ok()) return before.status();
  return common_prefix(*before, rendered);
}

// Many templates cannot render what precedes a conversation that the assistant opens, which is
// nothing. So texts of two other answers show where the answer begins, and behind which header.
std::size_t ConversationBuilder::opening_answer(const DataRow& row,
                                                const std::string& rendered) const {
  const auto render_one = [&](const char* role, const char* content, bool asks) {
    const ordered_json message = {{"role", role}, {"content", content}};
    return render(row, ordered_json::array({message}), asks);
  };
  const Result<std::string> one = render_one("assistant", "A", false),
                            other = render_one("assistant", "B", false);
  if (!one.ok() || !other.ok()) return 0;
  const std::size_t text = std::min(common_prefix(*one, *other), common_prefix(*one, rendered));
  const Result<std::string> said = render_one("user", "", false),
                            asked = render_one("user", "", true);
  if (!said.ok() || !asked.ok()) return text;
  // A template may put thoughts between the header, with which it asks, and the text: they are
  // learned, as in the turns behind.
  std::string header = asked->substr(common_prefix(*said, *asked));
  header.erase(0, header.find_first_not_of(" \n"));
  const std::size_t at = header.empty() ? text : rendered.substr(0, text).rfind(header);
  return at == std::string::npos || header.empty() ? text : at + header.size();
}

// Renders the conversation as far as each turn of the assistant: before it, where the template asks
// the model to continue, and behind it.
Result<std::vector<ConversationBuilder::Piece>> ConversationBuilder::growing_pieces(
    const DataRow& row) const {
  const ordered_json& messages = row.prompt;
  std::vector<Piece> pieces;
  std::string done;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool answer = is_assistant(messages[i]);
    if (!answer && i + 1 < messages.size()) continue;
    const ordered_json so_far = first_messages(messages, i + 1);
    const Result<std::string> behind = render(row, so_far, false);
    if (!behind.ok()) return behind.status();
    if (const Status written = check_calls_written(row, so_far, *behind, message_name(row, i));
        !written.ok())
      return written;
    if (!behind->starts_with(done)) {
      return invalid_argument(
          message_name(row, i) +
          ": the chat template writes what is before it differently than without it. What the "
          "model saw when it answered is then not what comes before its next answer. Set "
          "data.ignore_input_ids_mismatch=true to render each message by itself");
    }
    std::size_t begin = behind->size();
    if (answer) {
      const Result<std::size_t> found = i == 0 ? Result<std::size_t>(opening_answer(row, *behind))
                                               : answer_begin(row, i, *behind);
      if (!found.ok()) return found.status();
      begin = *found;
      if (begin < done.size())
        return invalid_argument(
            message_name(row, i) +
            ": the chat template does not continue where the previous message ends");
    }
    pieces.push_back({behind->substr(done.size(), begin - done.size()), false});
    pieces.push_back({behind->substr(begin), is_learned(messages[i])});
    done = *behind;
  }
  return pieces;
}

// verl's way: each message as its own conversation, without the system prompt that a template
// puts before every conversation.
Result<std::vector<ConversationBuilder::Piece>> ConversationBuilder::single_pieces(
    const DataRow& row) const {
  const ordered_json empty = {{"role", "user"}, {"content", ""}};
  const Result<std::string> once = render(row, ordered_json::array({empty}), false);
  if (!once.ok()) return once.status();
  const Result<std::string> twice = render(row, ordered_json::array({empty, empty}), false);
  if (!twice.ok()) return twice.status();
  const Result<std::string> asked = render(row, ordered_json::array({empty}), true);
  if (!asked.ok()) return asked.status();
  const std::size_t system = 2 * once->size() - std::min(2 * once->size(), twice->size());
  const std::string ask = asked->substr(common_prefix(*once, *asked));
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < row.prompt.size(); ++i) {
    const ordered_json alone = ordered_json::array({row.prompt[i]});
    Result<std::string> text = render(row, alone, false);
    if (!text.ok()) return text.status().with_context(message_name(row, i));
    if (const Status written = check_calls_written(row, alone, *text, message_name(row, i));
        !written.ok())
      return written;
    if (i > 0 && row.prompt[i].at("role") != "system")
      text->erase(0, std::min(system, text->size()));
    std::size_t begin = text->size();
    if (is_assistant(row.prompt[i]))
      begin = i == 0 ? opening_answer(row, *text) : common_prefix(ask, *text);
    pieces.push_back({text->substr(0, begin), false});
    pieces.push_back({text->substr(begin), begin < text->size() && is_learned(row.prompt[i])});
  }
  return pieces;
}

Result<LearnedTokens> ConversationBuilder::conversation(const DataRow& row) const {
  if (!row.is_chat())
    return invalid_argument(row.where +
                            ": nothing to learn: the row has a prompt and no response "
                            "(data.response_key), and is no conversation (data.messages_key)");
  if (std::none_of(row.prompt.begin(), row.prompt.end(), is_assistant))
    return invalid_argument(row.where + ": nothing to learn: no message is the assistant's");
  if (std::none_of(row.prompt.begin(), row.prompt.end(), is_learned))
    return invalid_argument(row.where +
                            ": nothing to learn: all messages of the assistant have weight 0");
  if (chat_template_.empty())
    return invalid_argument(
        row.where +
        ": a conversation, and the model has no chat template: set model.custom_chat_template");
  const Result<std::vector<Piece>> pieces =
      options_.message_by_message ? single_pieces(row) : growing_pieces(row);
  if (!pieces.ok()) return pieces.status();
  LearnedTokens tokens;
  for (const Piece& piece : *pieces) {
    // A template writes the special tokens itself.
    const Result<std::vector<std::int32_t>> ids =
        tokenizer_->encode(piece.text, /*add_special_tokens=*/false);
    if (!ids.ok()) return ids.status().with_context(row.where);
    tokens.ids.insert(tokens.ids.end(), ids->begin(), ids->end());
    tokens.learned.resize(tokens.ids.size(), piece.learned ? 1 : 0);
  }
  if (tokens.ids.empty())
    return invalid_argument(row.where + ": the chat template makes nothing of the conversation");
  return tokens;
}

Result<LearnedTokens> ConversationBuilder::cut(LearnedTokens tokens, const DataRow& row) const {
  const auto size = static_cast<std::int64_t>(tokens.ids.size());
  if (size <= options_.sequence.tokens_max) return tokens;
  const auto excess = static_cast<std::ptrdiff_t>(size - options_.sequence.tokens_max);
  switch (options_.sequence.truncation) {
    case Truncation::kLeft:
      tokens.ids.erase(tokens.ids.begin(), tokens.ids.begin() + excess);
      tokens.learned.erase(tokens.learned.begin(), tokens.learned.begin() + excess);
      tokens.learned.front() = 0;
      return tokens;
    case Truncation::kRight:
      tokens.ids.resize(static_cast<std::size_t>(options_.sequence.tokens_max));
      tokens.learned.resize(static_cast<std::size_t>(options_.sequence.tokens_max));
      return tokens;
    case Truncation::kError:
    case Truncation::kMiddle: break;
  }
  return invalid_argument(row.where + ": the sequence has " + std::to_string(size) +
                          " tokens, data.max_length is " +
                          std::to_string(options_.sequence.tokens_max) +
                          ": raise it, or set data.truncation=left|right");
}

}  // namespace rl
