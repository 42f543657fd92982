// Private to rl/rollout: the text of a completion as its tokens come, and the stop strings in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/text/tokenizer.h"

namespace rl {

/// The text of one completion. A stop string may begin and end anywhere in a token.
class CompletionText {
 public:
  CompletionText(Tokenizer tokenizer, bool skip_special_tokens,
                 std::vector<std::string> stop_strings, bool keep_stop_string);

  /// Adds a token. True when a stop string is complete, if it may count: the text then ends there.
  bool push(std::int32_t id, bool may_stop);

  /// The last token has come: adds what the tokens held back. True as push.
  bool finish(bool may_stop);

  /// What can be shown that was not yet: all of it but what may become a stop string.
  std::string take_new();

  const std::string& text() const { return text_; }
  const std::string& stop_string() const { return stop_; }

 private:
  bool add(const std::string& piece, bool may_stop);

  TokenStream stream_;
  std::vector<std::string> stop_strings_;
  bool keep_stop_string_;
  std::string text_;
  std::string stop_;  // the one that was found
  std::size_t shown_ = 0;
  bool ended_ = false;
};

}  // namespace rl
