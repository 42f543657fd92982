// The text of a chat template between two turns of a model. It has the turn's end, the messages
// that answer it, and the beginning of the next turn.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// Turns that were generated are never encoded again: only what comes after them is.
class TurnText {
 public:
  /// `variables` are what prompts are rendered with (`data.apply_chat_template_kwargs`).
  /// kInvalidArgument: no chat template, or one that does not parse.
  static runtime::Result<TurnText> create(Tokenizer tokenizer, const std::string& chat_template,
                                          nlohmann::ordered_json variables);

  /// Ids of what follows a turn that ended with the token `last`. These are the rest of its end,
  /// `messages` ({"role", "content"}), and what asks the model to continue. kInvalidArgument: the
  /// template refuses such messages, or shows a turn of the model otherwise once something follows
  /// it.
  runtime::Result<std::vector<std::int32_t>> between(std::int32_t last,
                                                     const nlohmann::ordered_json& messages) const;

  /// A whole conversation as the template shows it, with `tools` (null: none) and `variables` over
  /// those of create(). Errors: those of ChatTemplates::render.
  runtime::Result<std::string> render(const nlohmann::ordered_json& messages,
                                      const nlohmann::ordered_json& tools, bool asks,
                                      const nlohmann::ordered_json& variables) const;

  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  TurnText(Tokenizer tokenizer, ChatTemplates chat_template, nlohmann::ordered_json variables)
      : tokenizer_(std::move(tokenizer)),
        template_(std::move(chat_template)),
        variables_(std::move(variables)) {}
  runtime::Result<std::string> behind_marker(const nlohmann::ordered_json& messages,
                                             bool asks) const;

  Tokenizer tokenizer_;
  ChatTemplates template_;
  nlohmann::ordered_json variables_;
};

}  // namespace rl
