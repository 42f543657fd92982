#include "rl/rollout/completion_text.h"

#include <algorithm>
#include <utility>

namespace rl {

CompletionText::CompletionText(Tokenizer tokenizer, bool skip_special_tokens,
                               std::vector<std::string> stop_strings, bool keep_stop_string)
    : stream_(std::move(tokenizer), skip_special_tokens),
      stop_strings_(std::move(stop_strings)),
      keep_stop_string_(keep_stop_string) {}

bool CompletionText::push(std::int32_t id, bool may_stop) {
  return add(stream_.push(id), may_stop);
}

bool CompletionText::finish(bool may_stop) {
  if (ended_) return !stop_.empty();
  const bool found = add(stream_.finish(), may_stop);
  ended_ = true;
  return found;
}

// The earliest stop string that ends in the new piece; of those that begin at one place the first
// that was named.
bool CompletionText::add(const std::string& piece, bool may_stop) {
  if (ended_) return !stop_.empty();
  const std::size_t before = text_.size();
  text_ += piece;
  if (!may_stop || piece.empty()) return false;
  std::size_t earliest = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    const std::size_t at = text_.find(stop, before - std::min(before, stop.size() - 1));
    if (at < earliest) earliest = at, stop_ = stop;
  }
  if (earliest == std::string::npos) return false;
  text_.resize(earliest + (keep_stop_string_ ? stop_.size() : 0));
  ended_ = true;
  return true;
}

std::string CompletionText::take_new() {
  std::size_t end = text_.size();
  if (!ended_) {
    for (const std::string& stop : stop_strings_) {
      for (std::size_t length = std::min(stop.size() - 1, text_.size()); length > 0; --length) {
        if (!text_.ends_with(std::string_view(stop).substr(0, length))) continue;
        end = std::min(end, text_.size() - length);
        break;
      }
    }
    while (end > 0 && end < text_.size() &&
           (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80U)
      --end;  // not inside a character
  }
  if (end <= shown_) return {};
  std::string fresh = text_.substr(shown_, end - shown_);
  shown_ = end;
  return fresh;
}

}  // namespace rl
