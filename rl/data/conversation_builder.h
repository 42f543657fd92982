// Conversation builder: a row becomes tokens of which some are to be learned.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/data/data_row.h"
#include "rl/data/prompt_builder.h"
#include "rl/data/sequence_options.h"
#include "rl/template/chat_templates.h"
#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/result.h"

namespace rl {

/// Tokens of one row; a value.
struct LearnedTokens {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> learned;  // as many: 1 where the token is to be learned. The first
                                      // never is, since nothing precedes it

  std::int64_t count() const;  // of learned tokens

  /// All its ids, and how many tokens its longest sequence has.
  std::vector<std::span<const std::int32_t>> parts() const { return {ids}; }
  std::int64_t longest() const { return static_cast<std::int64_t>(ids.size()); }

  bool operator==(const LearnedTokens&) const = default;
};

struct ConversationOptions {
  SequenceOptions sequence;
  bool thinking_given = false;  // whether `thinking` is what rows have that do not say
  bool thinking = false;
  bool message_by_message = false;  // render messages by themselves where a template writes one
                                    // differently once others follow
};

/// Of a row with a response, the response and the end-of-sequence token are learned. Of a
/// conversation (a row without), every turn of the assistant whose `weight` is not 0 is learned. A
/// turn is what the template writes from where it would ask the model to go on to the end of that
/// message. Pieces are encoded one by one, as the engine sees them: no token reaches from a prompt
/// into an answer. Borrows the tokenizer. Thread-safe.
class ConversationBuilder {
 public:
  /// kInvalidArgument: the template does not parse.
  static runtime::Result<ConversationBuilder> create(const Tokenizer& tokenizer,
                                                     const ConversationOptions& options);

  /// kInvalidArgument: no turn of the assistant, a template that refuses the messages, a sequence
  /// that is too long with Truncation::kError. Also a template that writes messages differently
  /// once others follow, or leaves out the calls of a turn that has nothing else. Messages name the
  /// row and the cure.
  runtime::Result<LearnedTokens> tokenize(const DataRow& row) const;

  /// What the template leaves out of a conversation, by the field's name: calls of tools, reasoning
  /// and the row's tools. Each says what to do, for people.
  std::map<std::string, std::string> unwritten_fields(const DataRow& row) const;

 private:
  // A piece of the rendered conversation.
  struct Piece {
    std::string text;
    bool learned = false;
  };

  ConversationBuilder(const Tokenizer& tokenizer, ConversationOptions options,
                      PromptBuilder prompts, ChatTemplates chat_template)
      : tokenizer_(&tokenizer),
        options_(std::move(options)),
        prompts_(std::move(prompts)),
        chat_template_(std::move(chat_template)) {}

  runtime::Result<LearnedTokens> prompt_and_response(const DataRow& row) const;
  runtime::Result<LearnedTokens> conversation(const DataRow& row) const;
  runtime::Result<std::vector<Piece>> growing_pieces(const DataRow& row) const;
  runtime::Result<std::vector<Piece>> single_pieces(const DataRow& row) const;
  runtime::Result<std::string> render(const DataRow& row, const nlohmann::ordered_json& messages,
                                      bool asks) const;
  runtime::Result<std::string> render_without(const DataRow& row, nlohmann::ordered_json messages,
                                              const char* field) const;
  /// Where the answer begins in the messages up to it, rendered: that of message `index`, and that
  /// of the first message.
  runtime::Result<std::size_t> answer_begin(const DataRow& row, std::size_t index,
                                            const std::string& rendered) const;
  std::size_t opening_answer(const DataRow& row, const std::string& rendered) const;
  /// Of the last of the messages, which were rendered.
  runtime::Status check_calls_written(const DataRow& row, const nlohmann::ordered_json& messages,
                                      const std::string& rendered, const std::string& at) const;
  runtime::Result<LearnedTokens> cut(LearnedTokens tokens, const DataRow& row) const;

  const Tokenizer* tokenizer_;
  ConversationOptions options_;
  PromptBuilder prompts_;
  ChatTemplates chat_template_;
};

}  // namespace rl
