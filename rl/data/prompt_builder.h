// Prompt builder: a row becomes the token ids that a model is asked to continue.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rl/config/config.h"
#include "rl/data/dataset.h"
#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// What to do with a prompt longer than the limit: refuse it, keep its end, its beginning, or both
/// ends.
enum class Truncation { kError, kLeft, kRight, kMiddle };

runtime::Result<Truncation> parse_truncation(std::string_view name);

struct PromptOptions {
  std::int64_t prompt_tokens_max = 512;
  Truncation truncation = Truncation::kError;
  bool filter_overlong = false;  // drop rows over the limit before training starts
  std::string chat_template;     // overrides the model's own when not empty
  nlohmann::ordered_json template_variables =
      nlohmann::ordered_json::object();  // `data.apply_chat_template_kwargs`
  nlohmann::ordered_json tools =
      nullptr;  // schemas of tools that the model may call, in place of a row's own

  /// From `data.*` and `actor_rollout_ref.model.custom_chat_template`.
  static runtime::Result<PromptOptions> from_config(const Config& config);
};

/// Renders chats with the model's template (plain prompts are encoded as they are, with the special
/// tokens the tokenizer adds), encodes and truncates. Borrows the tokenizer. Thread-safe.
class PromptBuilder {
 public:
  /// kInvalidArgument: the template does not parse. A model without a template is fine as long as
  /// no row is a chat.
  static runtime::Result<PromptBuilder> create(const Tokenizer& tokenizer,
                                               const PromptOptions& options);

  /// The text that the model sees, before encoding. kInvalidArgument: the template refused the
  /// messages, or there is none. Without `asks`, the chat is not left where the model is to go on.
  runtime::Result<std::string> text(const DataRow& row, bool asks = true) const;

  /// What the template leaves out of a chat's messages and tools. `template_key` sets another.
  std::map<std::string, std::string> unwritten_fields(
      const DataRow& row,
      const char* template_key = "actor_rollout_ref.model.custom_chat_template") const;

  /// Ids within the limit. kInvalidArgument: longer, with Truncation::kError; the message names the
  /// row and the cure.
  runtime::Result<std::vector<std::int32_t>> ids(const DataRow& row) const;

  /// Ids of the row's demonstration, closed with the end-of-sequence token; kInvalidArgument when
  /// the row has none.
  runtime::Result<std::vector<std::int32_t>> response_ids(const DataRow& row) const;

  /// The rows that fit, in order, when `filter_overlong` is set; otherwise all. `dropped` counts
  /// the others. kInvalidArgument: nothing is left.
  runtime::Result<Dataset> filter(Dataset dataset, std::int64_t* dropped = nullptr) const;

 private:
  PromptBuilder(const Tokenizer& tokenizer, PromptOptions options, ChatTemplates chat_template);
  runtime::Result<std::vector<std::int32_t>> encode(const DataRow& row) const;

  const Tokenizer* tokenizer_;
  PromptOptions options_;
  ChatTemplates chat_template_;
};

/// Cuts `ids` to `limit` by the policy: kLeft keeps the end, kRight the beginning, kMiddle both
/// ends (the begin gets the smaller half). kInvalidArgument for kError when it is longer.
runtime::Result<std::vector<std::int32_t>> truncate(std::vector<std::int32_t> ids,
                                                    std::int64_t limit, Truncation truncation);

}  // namespace rl
