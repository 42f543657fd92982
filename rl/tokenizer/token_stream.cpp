// TokenStream: incremental decoding.
#include <utility>

#include "rl/tokenizer/bytes.h"
#include "rl/tokenizer/clean_up.h"
#include "rl/tokenizer/pipeline.h"
#include "rl/tokenizer/tokenizer.h"
#include "rl/tokenizer/unicode_text.h"

namespace rl {

namespace {

// How many ids may wait for a character to complete. A character has at most four bytes, and each
// id brings one or more.
constexpr std::size_t kWaitingMax = 4;

// How many ids without their own text are kept as context.
constexpr std::size_t kContextMax = 64;

}  // namespace

TokenStream::TokenStream(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string TokenStream::push(std::int32_t id) {
  if (!tokenizer_.pipeline().cleans_up_spaces) return push_as_is(id);
  uncleaned_ += push_as_is(id);
  const std::size_t length = cleanable_length(uncleaned_);
  std::string text = clean_up_spaces(uncleaned_.substr(0, length));
  uncleaned_.erase(0, length);
  return text;
}

std::string TokenStream::push_as_is(std::int32_t id) {
  const TokenizerPipeline& pipeline = tokenizer_.pipeline();
  const std::string_view token = pipeline.token(id);
  if (token.empty() || (skip_special_tokens_ && pipeline.is_special(id))) return {};
  if (pipeline.decoder == nullptr || !pipeline.decoder->is_byte_level()) return push_window(id);
  std::string bytes;
  append_token_bytes(token, bytes);
  return push_bytes(bytes);
}

std::string TokenStream::push_bytes(std::string_view bytes) {
  pending_ += bytes;
  const std::size_t complete = complete_utf8_length(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

// The text of the new ids is what decoding them behind their context adds to decoding the context
// alone.
std::string TokenStream::push_window(std::int32_t id) {
  ids_.push_back(id);
  if (window_text().ends_with(kReplacementCharacter) && ids_.size() - emitted_ < kWaitingMax)
    return {};
  return emit_window();
}

std::string TokenStream::window_text() const {
  const std::string before =
      tokenizer_.pipeline().decode_as_is(std::span(ids_).first(emitted_), skip_special_tokens_);
  std::string after = tokenizer_.pipeline().decode_as_is(ids_, skip_special_tokens_);
  if (after.starts_with(before)) return after.substr(before.size());
  // Bytes that were text by themselves no longer are: what has been emitted stays, the new ids
  // stand alone.
  return tokenizer_.pipeline().decode_as_is(std::span(ids_).subspan(emitted_),
                                            skip_special_tokens_);
}

// The ids emitted now become the context of the next, since a token's text may depend on the one
// before it. Only they: they begin with a whole character, which an arbitrary number of ids would
// not. Where they are no text by themselves, spaces say, which the beginning of a text loses, what
// was before them stays too.
std::string TokenStream::emit_window() {
  std::string text = window_text();
  const bool alone = !tokenizer_.pipeline()
                          .decode_as_is(std::span(ids_).subspan(emitted_), skip_special_tokens_)
                          .empty();
  if (alone || emitted_ > kContextMax)
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(emitted_));
  emitted_ = ids_.size();
  return text;
}

std::string TokenStream::finish() {
  std::string text = replace_invalid_utf8(pending_);
  if (ids_.size() > emitted_) text += window_text();
  pending_.clear();
  ids_.clear();
  emitted_ = 0;
  if (!tokenizer_.pipeline().cleans_up_spaces) return text;
  text = clean_up_spaces(std::exchange(uncleaned_, {}) + text);
  return text;
}

}  // namespace rl
