#include "rl/rollout/completion_text.h"

#include <algorithm>
#include <utility>

namespace rl {

CompletionText::CompletionText(Tokenizer tokenizer, bool skip_special_tokens,
                               std::vector<std::string> stop_strings, bool keep_stop_string)
    : tokenizer_(std::move(tokenizer)),
      stream_(tokenizer_, skip_special_tokens),
      search_stream_(tokenizer_, false),
      hides_(skip_special_tokens && !stop_strings.empty()),
      stop_strings_(std::move(stop_strings)),
      keep_stop_string_(keep_stop_string) {}

bool CompletionText::push(std::int32_t id, bool may_stop) {
  if (ended_) return !stop_.empty();
  const std::size_t before = searched().size();
  text_ += stream_.push(id);
  if (hides_) {
    searched_ += search_stream_.push(id);
    note_hidden(id);
  }
  return add(before, may_stop);
}

bool CompletionText::finish(bool may_stop) {
  if (ended_) return !stop_.empty();
  const std::size_t before = searched().size();
  text_ += stream_.finish();
  if (hides_) searched_ += search_stream_.finish();
  const bool found = add(before, may_stop);
  ended_ = true;
  return found;
}

void CompletionText::note_hidden(std::int32_t id) {
  if (!tokenizer_.is_special(id)) return;
  const std::string token = tokenizer_.id_to_token(id);
  if (!token.empty() && searched_.ends_with(token))
    hidden_.push_back({searched_.size() - token.size(), searched_.size()});
}

// How many bytes of `text_` come from what is searched behind `at`.
std::size_t CompletionText::shown_behind(std::size_t at) const {
  std::size_t count = searched().size() - std::min(at, searched().size());
  for (auto one = hidden_.rbegin(); one != hidden_.rend() && one->end > at; ++one)
    count -= one->end - std::max(one->begin, at);
  return std::min(count, text_.size());
}

// The earliest stop string that ends in what is new; of those that begin at one place the first
// that was named.
bool CompletionText::add(std::size_t before, bool may_stop) {
  const std::string& text = searched();
  if (!may_stop || text.size() == before) return false;
  std::size_t earliest = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    const std::size_t at = text.find(stop, before - std::min(before, stop.size() - 1));
    if (at < earliest) earliest = at, stop_ = stop;
  }
  if (earliest == std::string::npos) return false;
  text_.resize(text_.size() - shown_behind(earliest));
  if (keep_stop_string_) text_ += stop_;
  ended_ = true;
  return true;
}

std::string CompletionText::take_new() {
  std::size_t end = text_.size();
  if (!ended_) {
    for (const std::string& stop : stop_strings_) {
      for (std::size_t length = std::min(stop.size() - 1, searched().size()); length > 0;
           --length) {
        if (!searched().ends_with(std::string_view(stop).substr(0, length))) continue;
        end = std::min(end, text_.size() - shown_behind(searched().size() - length));
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
