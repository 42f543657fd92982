#include "rl/tokenizer/bytes.h"

#include "rl/tokenizer/unicode_text.h"

namespace rl {

namespace {

constexpr bool printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

struct Alphabet {
  std::array<char16_t, 256> character{};
  std::array<std::int16_t, 0x144> byte{};  // by character; -1 where it stands for none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte) byte = -1;
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char16_t c = printable(byte) ? static_cast<char16_t>(byte) : next++;
    alphabet.character[byte] = c;
    alphabet.byte[c] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();
static_assert(kAlphabet.character[' '] == u'\u0120');

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

char32_t byte_to_character(std::uint8_t byte) { return kAlphabet.character[byte]; }

std::optional<std::uint8_t> character_to_byte(char32_t c) {
  if (c >= kAlphabet.byte.size() || kAlphabet.byte[c] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kAlphabet.byte[c]);
}

void append_byte_characters(std::string_view bytes, std::string& out) {
  for (char byte : bytes) append_utf8(byte_to_character(static_cast<std::uint8_t>(byte)), out);
}

void append_token_bytes(std::string_view token, std::string& out) {
  const std::size_t start = out.size();
  for (std::size_t at = 0; at < token.size();) {
    auto byte = character_to_byte(next_code_point(token, at));
    if (!byte) {
      out.resize(start);
      out += token;
      return;
    }
    out += static_cast<char>(*byte);
  }
}

std::optional<std::uint8_t> parse_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<std::uint8_t>(high * 16 + low);
}

std::string byte_token(std::uint8_t byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + '>';
}

}  // namespace rl
