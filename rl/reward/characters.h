// Classes of ASCII characters in answers. Private to rl/reward.
#pragma once

#include <cctype>

namespace rl {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

}  // namespace rl
