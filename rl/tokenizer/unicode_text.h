// UTF-8 and the Unicode properties that tokenizers need. Functions that take "valid" text rely on
// the check in Tokenizer::encode and do not check again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// The character that SentencePiece writes for a space: U+2581.
inline constexpr std::string_view kWordMark = "\xe2\x96\x81";

/// Offset of the first byte that is not part of well-formed UTF-8, or nullopt. Cost: a few bytes
/// per nanosecond on ASCII.
std::optional<std::size_t> invalid_utf8_at(std::string_view text);

/// The code point that starts at `at` in valid text; moves `at` behind it.
char32_t next_code_point(std::string_view text, std::size_t& at);

/// The code point that ends before `end` (> 0) in valid text; moves `end` to where it starts.
char32_t previous_code_point(std::string_view text, std::size_t& end);

/// Bytes of the character that starts with this byte of valid text.
inline std::size_t utf8_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

void append_utf8(char32_t code_point, std::string& out);

bool is_ascii(std::string_view text);

/// Replaces every maximal part of a damaged sequence by one U+FFFD, as Unicode recommends and Rust
/// and Python do.
std::string replace_invalid_utf8(std::string_view bytes);

/// Length of `bytes` without a last character that is still incomplete but could be completed by
/// further bytes.
std::size_t complete_utf8_length(std::string_view bytes);

bool is_white_space(char32_t c);  // Unicode's White_Space
bool is_numeric(char32_t c);      // categories Nd, Nl, No
bool is_punctuation(char32_t c);  // categories P* as Hugging Face's tables have them, and ASCII's
                                  // punctuation and symbols
bool is_mark(char32_t c);         // categories M*, as Hugging Face's tables have them
bool is_nonspacing_mark(char32_t c);  // category Mn
bool is_word_character(
    char32_t c);  // alphabetic, marks, decimal digits, connector punctuation, join controls
bool is_other(char32_t c);  // categories Cc, Cf, Cs, Co

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

}  // namespace rl
