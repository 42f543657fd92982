// The byte alphabet of byte-level BPE (GPT-2): each byte stands as one printable character, so that
// vocabularies are text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// The character that stands for `byte`: itself when printable Latin-1, else one of U+0100 to
/// U+0143 in order.
char32_t byte_to_character(std::uint8_t byte);

/// The byte that `c` stands for.
std::optional<std::uint8_t> character_to_byte(char32_t c);

/// Each byte of `bytes` as its character, in UTF-8.
void append_byte_characters(std::string_view bytes, std::string& out);

/// The bytes that a vocabulary entry stands for. When any character stands for no byte, the entry's
/// own bytes (an added token).
void append_token_bytes(std::string_view token, std::string& out);

/// The byte b when `token` is "<0xB>" with two hexadecimal digits: how byte-fallback vocabularies
/// spell a byte.
std::optional<std::uint8_t> parse_byte_token(std::string_view token);

/// "<0x0A>".
std::string byte_token(std::uint8_t byte);

}  // namespace rl
