#include "rl/tokenizer/aligned_text.h"

#include <algorithm>
#include <utility>

#include "rl/tokenizer/unicode_text.h"

namespace rl {

AlignedText align(std::string_view original, std::uint32_t begin) {
  AlignedText aligned{std::string(original), {}, begin};
  aligned.origins.reserve(original.size());
  for (std::size_t at = 0; at < original.size();) {
    const std::size_t length = utf8_length(original[at]);
    const auto start = static_cast<std::uint32_t>(begin + at);
    aligned.origins.insert(aligned.origins.end(), length,
                           {start, static_cast<std::uint32_t>(start + length)});
    at += length;
  }
  return aligned;
}

void AlignedRewriter::add(std::string_view text, std::size_t at) {
  if (at < old_.origins.size()) add(text, old_.origins[at]);
}

void AlignedRewriter::add(std::string_view text, Piece origin) {
  new_.text += text;
  new_.origins.insert(new_.origins.end(), text.size(), origin);
}

void AlignedRewriter::keep(std::size_t begin, std::size_t end) {
  new_.text.append(old_.text, begin, end - begin);
  new_.origins.insert(new_.origins.end(), old_.origins.begin() + static_cast<std::ptrdiff_t>(begin),
                      old_.origins.begin() + static_cast<std::ptrdiff_t>(end));
}

void AlignedRewriter::finish() { old_ = std::move(new_); }

void apply_changes(std::span<const CharacterChange> changes, AlignedText& text) {
  AlignedRewriter rewriter(text);
  std::string spelled;
  std::size_t at = 0;  // in the old text
  const auto step = [&] {
    if (at < text.text.size()) at += utf8_length(text.text[at]);
  };
  for (const CharacterChange& change : changes) {
    spelled.clear();
    append_utf8(change.character, spelled);
    if (change.change > 0) {
      rewriter.add(spelled, at == 0 ? text.start() : text.origins[at - 1]);
      continue;
    }
    rewriter.add(spelled, at < text.origins.size() ? text.origins[at] : text.start());
    for (int i = 0; i <= -change.change; ++i) step();
  }
  rewriter.finish();
}

}  // namespace rl
