#include "rl/tokenizer/unicode_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "rl/tokenizer/unicode_corrections.h"

namespace rl {

namespace {

enum class Utf8Sequence { kComplete, kIncomplete, kInvalid };

// Looks at the sequence starting at text[at]. `length` gets its bytes when complete, otherwise
// those of the maximal part that could have begun a character (at least 1). kIncomplete: the text
// ended before the sequence did.
Utf8Sequence scan(std::string_view text, std::size_t at, std::size_t& length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  length = 1;
  if (first < 0x80) return Utf8Sequence::kComplete;
  if (first < 0xc2 || first > 0xf4) return Utf8Sequence::kInvalid;
  const std::size_t wanted = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  for (; length < wanted; ++length) {
    if (at + length == text.size()) return Utf8Sequence::kIncomplete;
    if (byte(length) < low || byte(length) > high) return Utf8Sequence::kInvalid;
    low = 0x80;
    high = 0xbf;
  }
  return Utf8Sequence::kComplete;
}

// Length of the run of ASCII at `at`, in steps of eight bytes.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace

std::optional<std::size_t> invalid_utf8_at(std::string_view text) {
  for (std::size_t at = 0;;) {
    at = skip_ascii(text, at);
    if (at == text.size()) return std::nullopt;
    std::size_t length;
    if (scan(text, at, length) != Utf8Sequence::kComplete) return at;
    at += length;
  }
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const std::size_t length = utf8_length(text[at]);
  char32_t c;
  if (length == 1) {
    c = byte(0);
  } else if (length == 2) {
    c = (byte(0) & 31) << 6 | (byte(1) & 63);
  } else if (length == 3) {
    c = (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
  } else {
    c = (byte(0) & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
  }
  at += length;
  return c;
}

char32_t previous_code_point(std::string_view text, std::size_t& end) {
  do {
    --end;
  } while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  std::size_t at = end;
  return next_code_point(text, at);
}

void append_utf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

bool is_ascii(std::string_view text) { return skip_ascii(text, 0) == text.size(); }

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length;
    const bool whole = scan(bytes, at, length) == Utf8Sequence::kComplete;
    out += whole ? bytes.substr(at, length) : kReplacementCharacter;
    at += length;
  }
  return out;
}

std::size_t complete_utf8_length(std::string_view bytes) {
  // The unfinished character, if any, begins within the last three bytes.
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const std::size_t at = bytes.size() - back;
    std::size_t length;
    if ((static_cast<unsigned char>(bytes[at]) & 0xc0) == 0x80) continue;
    return scan(bytes, at, length) == Utf8Sequence::kIncomplete ? at : bytes.size();
  }
  return bytes.size();
}

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto kind = category(c);
  return corrected_numeric(c, kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
                                  kind == UTF8PROC_CATEGORY_NO);
}

namespace {

// Punctuation that the tables of Hugging Face's tokenizers (0.23.3), of an older Unicode, do not
// know as such.
constexpr std::pair<char32_t, char32_t> kLaterPunctuation[] = {
    {0x61d, 0x61d},     {0x9fd, 0x9fd},     {0xa76, 0xa76},     {0xc77, 0xc77},
    {0xc84, 0xc84},     {0x1b7d, 0x1b7e},   {0x2e43, 0x2e4f},   {0x2e52, 0x2e5d},
    {0x10ead, 0x10ead}, {0x10f55, 0x10f59}, {0x10f86, 0x10f89}, {0x1144b, 0x1144f},
    {0x1145a, 0x1145b}, {0x1145d, 0x1145d}, {0x11660, 0x1166c}, {0x116b9, 0x116b9},
    {0x1183b, 0x1183b}, {0x11944, 0x11946}, {0x119e2, 0x119e2}, {0x11a3f, 0x11a46},
    {0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2}, {0x11b00, 0x11b09}, {0x11c41, 0x11c45},
    {0x11c70, 0x11c71}, {0x11ef7, 0x11ef8}, {0x11f43, 0x11f4f}, {0x11fff, 0x11fff},
    {0x12ff1, 0x12ff2}, {0x16e97, 0x16e9a}, {0x16fe2, 0x16fe2}, {0x1e95e, 0x1e95f},
};

bool is_later_punctuation(char32_t c) {
  return std::any_of(std::begin(kLaterPunctuation), std::end(kLaterPunctuation),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

}  // namespace

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
           !(c >= 'a' && c <= 'z');
  if (c == 0x166d || c == 0x111c9) return true;  // were punctuation in that Unicode
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !is_later_punctuation(c);
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return corrected_mark(c, kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME);
}

bool is_nonspacing_mark(char32_t c) {
  return corrected_nonspacing(c, category(c) == UTF8PROC_CATEGORY_MN);
}

bool is_word_character(char32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const auto kind = category(c);
  if ((kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ME) ||
      kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
      kind == UTF8PROC_CATEGORY_PC) {
    return true;
  }
  // Join controls, and the circled and squared letters, which are alphabetic symbols.
  const bool joins = c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
                     (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
                     (c >= 0x1f170 && c <= 0x1f189);
  return corrected_word(c, joins);
}

bool is_other(char32_t c) {
  const auto kind = category(c);
  return corrected_other(c, kind >= UTF8PROC_CATEGORY_CC);
}

}  // namespace rl
