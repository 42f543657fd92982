// Private to rl/rollout: the text of a completion as its tokens come, and the stop strings in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl/tokenizer/tokenizer.h"

namespace rl {

/// The text of one completion. A stop string may begin and end anywhere in a token. It is looked
/// for in the text with its special tokens, shown or not. It may hold special tokens, and does not
/// reach over one that it does not hold.
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
  /// Where a special token stands in `searched_`, though not in `text_`.
  struct Hidden {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  const std::string& searched() const { return hides_ ? searched_ : text_; }
  void note_hidden(std::int32_t id);
  std::size_t shown_behind(std::size_t at) const;
  bool add(std::size_t before, bool may_stop);

  Tokenizer tokenizer_;
  TokenStream stream_;
  TokenStream search_stream_;
  bool hides_ = false;  // special tokens are in `searched_` alone; else that stays empty
  std::vector<std::string> stop_strings_;
  bool keep_stop_string_;
  std::string text_;
  std::string searched_;
  std::vector<Hidden> hidden_;
  std::string stop_;  // the one that was found
  std::size_t shown_ = 0;
  bool ended_ = false;
};

}  // namespace rl
