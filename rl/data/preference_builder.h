// Preference builder: a row of preferences becomes the tokens of a prompt and of the responses to
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rl/data/prompt_builder.h"

namespace rl {

/// Tokens of one row. A value.
struct PreferenceTokens {
  std::vector<std::int32_t> prompt;    // never empty
  std::vector<std::int32_t> chosen;    // never empty; of a single response, it itself
  std::vector<std::int32_t> rejected;  // empty: a single response
  double margin = 0.0;
  bool wanted = true;

  bool operator==(const PreferenceTokens&) const = default;
};

struct PreferenceTokenOptions {
  std::int64_t tokens_max = 1024;              // of a prompt with a response
  Truncation truncation = Truncation::kError;  // kLeft keeps responses and the end of the prompt,
                                               // kRight the prompt and the beginning of responses
  std::string chat_template;                   // overrides the model's own when not empty
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();
};

/// Responses that are texts are closed with the end-of-sequence token; of messages it is what the
/// template writes behind the rendered prompt. Prompt and response are encoded apart, as the engine
/// sees them: no token reaches from one into the other. Borrows the tokenizer. Thread-safe.
class PreferenceBuilder {
 public:
  /// kInvalidArgument: the template does not parse; Truncation::kMiddle.
  static runtime::Result<PreferenceBuilder> create(const Tokenizer& tokenizer,
                                                   const PreferenceTokenOptions& options);

  /// kInvalidArgument: no preference in the row, a template that refuses the messages or changes
  /// the prompt once a response follows, too long with Truncation::kError, a prompt that leaves no
  /// room, responses that are equal once they are tokens. Messages name the row and the cure.
  runtime::Result<PreferenceTokens> tokenize(const DataRow& row) const;

 private:
  PreferenceBuilder(const Tokenizer& tokenizer, PreferenceTokenOptions options,
                    PromptBuilder prompts)
      : tokenizer_(&tokenizer), options_(std::move(options)), prompts_(std::move(prompts)) {}

  runtime::Result<std::vector<std::int32_t>> response(const DataRow& row,
                                                      const nlohmann::ordered_json& response) const;
  runtime::Result<std::string> messages_behind(const DataRow& row,
                                               const nlohmann::ordered_json& messages) const;
  runtime::Status cut(const DataRow& row, PreferenceTokens& tokens) const;

  const Tokenizer* tokenizer_;
  PreferenceTokenOptions options_;
  PromptBuilder prompts_;
};

}  // namespace rl
