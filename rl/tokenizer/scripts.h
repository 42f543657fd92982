// The script of a character, as Hugging Face's pre-tokenizer UnicodeScripts tells them apart.
#pragma once

#include <cstdint>

namespace rl {

/// A script that joins any other: of spaces and of what is not assigned.
inline constexpr std::uint8_t kAnyScript = 255;

/// A number for the script of `c`; Hiragana and Katakana count as Han, punctuation and digits as
/// their own script.
std::uint8_t script_of(char32_t c);

}  // namespace rl
