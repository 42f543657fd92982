#include "rl/tokenizer/clean_up.h"

#include <utility>

namespace rl {

namespace {

constexpr std::pair<std::string_view, std::string_view> kReplacements[] = {
    {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

}  // namespace

std::string clean_up_spaces(std::string text) {
  for (const auto& [from, to] : kReplacements) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

std::size_t cleanable_length(std::string_view text) {
  for (std::size_t i = text.size(); i > 1; --i) {
    // No replacement reaches over such a place.
    if (text[i - 1] == ' ' && text[i - 2] != ' ' && text[i - 2] != '\'') return i - 1;
  }
  return 0;
}

}  // namespace rl
