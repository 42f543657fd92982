// Classes of ASCII characters in answers. Private to rl/reward.
#pragma once

#include <cctype>
#include <cstddef>
#include <string_view>

namespace rl {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Where the letters that begin at `at` end.
inline std::size_t end_of_letters(std::string_view text, std::size_t at) {
  while (at < text.size() && is_letter(text[at])) ++at;
  return at;
}

}  // namespace rl
