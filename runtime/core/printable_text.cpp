#include "runtime/core/printable_text.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace runtime {
namespace {

/// A character of UTF-8; of size 0 where the bytes are none.
struct Utf8Character {
  std::uint32_t code_point = 0;
  std::size_t size = 0;
};

/// How many bytes a character has that begins so; 0: none begins so.
std::size_t size_from_first(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

Utf8Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = size_from_first(first);
  if (size == 1) return {first, 1};
  if (size == 0 || size > text.size()) return {};
  std::uint32_t code_point = first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  const bool overlong = (size == 3 && code_point < 0x800) || (size == 4 && code_point < 0x10000);
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  return overlong || surrogate || code_point > 0x10FFFF ? Utf8Character{}
                                                        : Utf8Character{code_point, size};
}

bool is_harmful(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) ||  // control characters, C1's among them
         c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);  // bidirectional marks
}

void append_escape(std::string& out, char kind, std::uint32_t value, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '\\';
  out += kind;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[value >> shift & 15];
}

}  // namespace

std::string printable_text(std::string_view text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code_point, size] = first_character(text);
    if (size == 0) {
      append_escape(out, 'x', static_cast<unsigned char>(text[0]), 2);
    } else if (code_point == '\n' || code_point == '\t') {
      out += one_line ? (code_point == '\n' ? "\\n" : "\\t") : text.substr(0, 1);
    } else if (!is_harmful(code_point)) {
      out += text.substr(0, size);
    } else if (code_point < 0x80) {
      append_escape(out, 'x', code_point, 2);
    } else {
      append_escape(out, 'u', code_point, 4);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const auto [code_point, size] = first_character(json);
    if (size == 0) {
      append_escape(out, 'u', 0xFFFD, 4);
    } else if (code_point == '\n' || !is_harmful(code_point)) {
      out += json.substr(0, size);
    } else {
      append_escape(out, 'u', code_point, 4);
    }
    json.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string terminal_text(int descriptor, std::string_view text) {
  return ::isatty(descriptor) == 1 ? printable_text(text) : std::string(text);
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    return size_from_first(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace runtime
