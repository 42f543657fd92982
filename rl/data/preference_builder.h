// Preference builder: a row of preferences becomes the tokens of a prompt and of the responses to
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/data/prompt_builder.h"
#include "rl/data/sequence_options.h"

namespace rl {

/// Tokens of one row. A value.
struct PreferenceTokens {
  std::vector<std::int32_t> prompt;    // never empty
  std::vector<std::int32_t> chosen;    // never empty; of a single response, it itself
  std::vector<std::int32_t> rejected;  // empty: a single response
  double margin = 0.0;
  bool wanted = true;

  /// All its ids, and how many tokens its longest sequence has.
  std::vector<std::span<const std::int32_t>> parts() const { return {prompt, chosen, rejected}; }
  std::int64_t longest() const;

  bool operator==(const PreferenceTokens&) const = default;
};

/// Responses that are texts are closed with the end-of-sequence token; of messages it is what the
/// template writes behind the rendered prompt. Prompt and response are encoded apart, as the engine
/// sees them: no token reaches from one into the other. Borrows the tokenizer. Thread-safe.
class PreferenceBuilder {
 public:
  /// Truncation::kLeft keeps responses and the end of the prompt, kRight the prompt and the
  /// beginning of responses. kInvalidArgument: the template does not parse; Truncation::kMiddle.
  static runtime::Result<PreferenceBuilder> create(const Tokenizer& tokenizer,
                                                   const SequenceOptions& options);

  /// kInvalidArgument: no preference in the row, too long with Truncation::kError, a prompt that
  /// leaves no room, responses that are equal once they are tokens. Also a template that refuses
  /// the messages, or changes the prompt once a response follows. Messages name the row and the
  /// cure.
  runtime::Result<PreferenceTokens> tokenize(const DataRow& row) const;

  /// What the template leaves out of the prompt's messages and those of its responses.
  std::map<std::string, std::string> unwritten_fields(const DataRow& row) const;

 private:
  PreferenceBuilder(const Tokenizer& tokenizer, SequenceOptions options, PromptBuilder prompts)
      : tokenizer_(&tokenizer), options_(std::move(options)), prompts_(std::move(prompts)) {}

  runtime::Result<std::vector<std::int32_t>> response(const DataRow& row,
                                                      const nlohmann::ordered_json& response) const;
  runtime::Result<std::string> messages_behind(const DataRow& row,
                                               const nlohmann::ordered_json& messages) const;
  runtime::Status cut(const DataRow& row, PreferenceTokens& tokens) const;

  const Tokenizer* tokenizer_;
  SequenceOptions options_;
  PromptBuilder prompts_;
};

}  // namespace rl
