#include "rl/template/python_string.h"

#include "rl/template/letter_case.h"
#include "rl/template/number_class.h"

#include <string.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

namespace rl {
namespace {

constexpr std::size_t kShortBytes = 32;  // of what is searched for from the end in the plain way

bool is_stray(std::string_view character) {
  return character.size() == 1 && static_cast<unsigned char>(character[0]) >= 0x80;
}

std::string map_up(std::string_view text, bool title) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view character : split_characters(text)) {
    const std::uint32_t code_point = decode_character(character);
    if (is_stray(character)) {
      out += character;
    } else if (const CaseExpansion* expansion =
                   code_point < 0x80 ? nullptr : find_case_expansion(code_point)) {
      out += title ? expansion->title : expansion->upper;
    } else {
      const auto c = static_cast<utf8proc_int32_t>(code_point);
      append_code_point(
          out, static_cast<std::uint32_t>(title ? utf8proc_totitle(c) : utf8proc_toupper(c)));
    }
  }
  return out;
}

utf8proc_category_t category_of(std::string_view character) {
  if (character.size() == 1 && static_cast<unsigned char>(character[0]) >= 0x80)
    return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(decode_character(character)));
}

bool is_letter(utf8proc_category_t c) {
  return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT ||
         c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_LO;
}

bool is_cased(std::string_view character) {
  const utf8proc_category_t c = category_of(character);
  return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

// What does not count when one asks which letter is next to another.
bool is_case_ignorable(std::string_view character) {
  const utf8proc_category_t c = category_of(character);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
         c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK ||
         std::string_view("'.:\u00b7\u2018\u2019\u2024\u2027").find(character) !=
             std::string_view::npos;
}

// Whether a sigma ends its word.
bool is_final(const std::vector<std::string_view>& characters, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(characters[before - 1])) --before;
  if (before == 0 || !is_cased(characters[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < characters.size() && is_case_ignorable(characters[after])) ++after;
  return after == characters.size() || !is_cased(characters[after]);
}

// The lower case of one character. Of a sigma it depends on its neighbours.
void append_lower(std::string& out, const std::vector<std::string_view>& characters,
                  std::size_t at) {
  const std::uint32_t code_point = decode_character(characters[at]);
  if (is_stray(characters[at])) {
    out += characters[at];
  } else if (code_point == 0x130) {
    out += "i\u0307";  // the only character whose lower case is two
  } else if (code_point == 0x3A3) {
    out += is_final(characters, at) ? "\u03c2" : "\u03c3";
  } else {
    append_code_point(out, static_cast<std::uint32_t>(
                               utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
  }
}

bool is_printable(std::string_view character) {
  const std::uint32_t code_point = decode_character(character);
  if (code_point < 0x80) return code_point >= 0x20 && code_point != 0x7F;
  switch (category_of(character)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

void append_hex(std::string& out, const char* prefix, std::uint32_t value, int width) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += prefix;
  for (int shift = 4 * (width - 1); shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 15];
}

/// As Python's literals have it.
void append_escape(std::string& out, std::string_view character) {
  const std::uint32_t code_point = decode_character(character);
  if (code_point < 0x100) {
    append_hex(out, "\\x", code_point, 2);
  } else if (code_point < 0x10000) {
    append_hex(out, "\\u", code_point, 4);
  } else {
    append_hex(out, "\\U", code_point, 8);
  }
}

}  // namespace

void append_code_point(std::string& out, std::uint32_t code_point) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) code_point = 0xFFFD;
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    out += static_cast<char>(0x80 | (code_point & 63));
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 63));
    out += static_cast<char>(0x80 | (code_point & 63));
  } else {
    out += static_cast<char>(0xF0 | (code_point >> 18));
    out += static_cast<char>(0x80 | ((code_point >> 12) & 63));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 63));
    out += static_cast<char>(0x80 | (code_point & 63));
  }
}

std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 1
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 1;
  if (size > text.size()) return 1;
  for (std::size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return size;
}

std::int64_t count_characters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < text.size(); i += character_size(text.substr(i))) ++count;
  return count;
}

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_size(text.substr(i));
    characters.push_back(text.substr(i, size));
    i += size;
  }
  return characters;
}

std::size_t last_character_size(std::string_view text) {
  std::size_t start = text.size() - 1;
  while (start > 0 && text.size() - start < 4 &&
         (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
    --start;
  const std::size_t size = text.size() - start;
  return character_size(text.substr(start)) == size ? size : 1;
}

std::size_t find_text(std::string_view text, std::string_view wanted) {
  const void* found = ::memmem(text.data(), text.size(), wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last_text(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return text.size();
  std::size_t last = std::string_view::npos;
  each_occurrence(text, wanted, /*from_right=*/true, [&last](std::size_t at) {
    last = at;
    return false;
  });
  return last;
}

void each_occurrence(std::string_view text, std::string_view wanted, bool from_right,
                     const std::function<bool(std::size_t)>& take) {
  if (!from_right) {
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t at = find_text(text.substr(from), wanted);
      if (at == std::string_view::npos || !take(from + at)) return;
      from += at + wanted.size();
    }
  } else if (wanted.size() <= kShortBytes) {
    for (std::size_t end = text.size(); end > 0;) {
      const std::size_t at = text.substr(0, end).rfind(wanted);
      if (at == std::string_view::npos || !take(at)) return;
      end = at;
    }
  } else {
    const std::string backwards(text.rbegin(), text.rend());
    each_occurrence(backwards, std::string(wanted.rbegin(), wanted.rend()), /*from_right=*/false,
                    [&](std::size_t at) { return take(text.size() - at - wanted.size()); });
  }
}

std::uint32_t decode_character(std::string_view character) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (character.size()) {
    case 2: return ((byte(0) & 31) << 6) | (byte(1) & 63);
    case 3: return ((byte(0) & 15) << 12) | ((byte(1) & 63) << 6) | (byte(2) & 63);
    case 4:
      return ((byte(0) & 7) << 18) | ((byte(1) & 63) << 12) | ((byte(2) & 63) << 6) |
             (byte(3) & 63);
    default: return byte(0);
  }
}

bool is_blank_character(std::string_view character) {
  const std::uint32_t c = decode_character(character);
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  if (character.size() == 1) return false;
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(std::string_view character) {
  const utf8proc_category_t c = category_of(character);
  return character == "_" || is_letter(c) || c == UTF8PROC_CATEGORY_ND ||
         c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

std::string_view strip_text(std::string_view text, bool left, bool right,
                            const std::string* characters) {
  std::set<std::string_view> dropped;
  if (characters != nullptr) {
    const std::vector<std::string_view> each = split_characters(*characters);
    dropped.insert(each.begin(), each.end());
  }
  const auto drops = [&](std::string_view character) {
    return characters == nullptr ? is_blank_character(character) : dropped.contains(character);
  };
  while (left && !text.empty()) {
    const std::size_t size = character_size(text);
    if (!drops(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (right && !text.empty()) {
    const std::size_t size = last_character_size(text);
    if (!drops(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  return text;
}

std::string to_upper(std::string_view text) { return map_up(text, /*title=*/false); }

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<std::string_view> characters = split_characters(text);
  for (std::size_t i = 0; i < characters.size(); ++i) append_lower(out, characters, i);
  return out;
}

std::string to_casefolded(std::string_view text) {
  std::string out;
  for (std::string_view character : split_characters(text)) {
    std::array<utf8proc_int32_t, 8> parts;  // at most three
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(decode_character(character)),
                                parts.data(), parts.size(), UTF8PROC_CASEFOLD, &boundary);
    if (count <= 0 || static_cast<std::size_t>(count) > parts.size() ||
        (character.size() == 1 && static_cast<unsigned char>(character[0]) >= 0x80)) {
      out += character;
      continue;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      append_code_point(out, static_cast<std::uint32_t>(parts[static_cast<std::size_t>(i)]));
  }
  return out;
}

std::string to_swapped_case(std::string_view text) {
  std::string out;
  const std::vector<std::string_view> characters = split_characters(text);
  for (std::size_t i = 0; i < characters.size(); ++i) {
    std::string lower;
    append_lower(lower, characters, i);
    if (category_of(characters[i]) == UTF8PROC_CATEGORY_LT) {
      out += characters[i];  // neither upper nor lower
    } else {
      out += lower != characters[i] ? lower : to_upper(characters[i]);
    }
  }
  return out;
}

std::string to_capitalized(std::string_view text) {
  if (text.empty()) return "";
  const std::vector<std::string_view> characters = split_characters(text);
  std::string out = map_up(characters[0], /*title=*/true);
  for (std::size_t i = 1; i < characters.size(); ++i) append_lower(out, characters, i);
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  bool in_word = false;
  const std::vector<std::string_view> characters = split_characters(text);
  for (std::size_t i = 0; i < characters.size(); ++i) {
    if (in_word) {
      append_lower(out, characters, i);
    } else {
      out += map_up(characters[i], /*title=*/true);
    }
    in_word = is_cased(characters[i]);  // letters without case begin no word
  }
  return out;
}

bool is_all(std::string_view text, CharacterClass wanted) {
  bool cased = false;
  std::size_t size = 0;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(size)) {
    size = character_size(rest);
    const std::string_view character = rest.substr(0, size);
    const utf8proc_category_t c = category_of(character);
    const bool decimal = c == UTF8PROC_CATEGORY_ND;
    const bool number = decimal || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
    switch (wanted) {
      case CharacterClass::kAlpha:
        if (!is_letter(c)) return false;
        break;
      case CharacterClass::kDecimal:
        if (!decimal) return false;
        break;
      case CharacterClass::kDigit:
        if (!decimal && !(c == UTF8PROC_CATEGORY_NO && is_other_digit(decode_character(character))))
          return false;
        break;
      case CharacterClass::kNumeric:
        if (!number &&
            !(c == UTF8PROC_CATEGORY_LO && is_numeric_letter(decode_character(character))))
          return false;
        break;
      case CharacterClass::kAlnum:
        if (!is_letter(c) && !number) return false;
        break;
      case CharacterClass::kSpace:
        if (!is_blank_character(character)) return false;
        break;
      case CharacterClass::kUpper:
      case CharacterClass::kLower: {
        const auto other =
            wanted == CharacterClass::kUpper ? UTF8PROC_CATEGORY_LL : UTF8PROC_CATEGORY_LU;
        if (c == other || c == UTF8PROC_CATEGORY_LT) return false;
        cased = cased || c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL;
        break;
      }
    }
  }
  if (wanted == CharacterClass::kUpper || wanted == CharacterClass::kLower) return cased;
  return !text.empty();
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = character_size(text.substr(i));
    const std::uint32_t c = decode_character(text.substr(i, size));
    const bool ends = (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) ||
                      (size > 1 && (c == 0x85 || c == 0x2028 || c == 0x2029));
    std::size_t next = i + size;
    if (ends) {
      if (c == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.emplace_back(text.substr(start, (keep_ends ? next : i) - start));
      start = next;
    }
    i = next;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

std::size_t line_bytes(std::string_view text) {
  const auto ends = [](char c) {
    const auto byte = static_cast<unsigned char>(c);  // the last of U+0085, U+2028, U+2029, too
    return (byte >= 10 && byte <= 13) || (byte >= 0x1C && byte <= 0x1E) || byte == 0x85 ||
           byte == 0xA8 || byte == 0xA9;
  };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), ends) + 1) *
         sizeof(std::string);
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<std::size_t>(scientific.ptr - buffer));
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  std::from_chars(shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1),
                  shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

std::string python_string_literal(std::string_view text) {
  const char quote =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"'
                                                                                            : '\'';
  std::string out(1, quote);
  for (std::string_view character : split_characters(text)) {
    const char c = character[0];
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(character)) {
      out += character;
    } else {
      append_escape(out, character);
    }
  }
  return out + quote;
}

std::string python_ascii(std::string_view text) {
  std::string out;
  for (std::string_view character : split_characters(text)) {
    if (static_cast<unsigned char>(character[0]) < 0x80)
      out += character;
    else
      append_escape(out, character);
  }
  return out;
}

std::string json_string(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  for (std::string_view character : split_characters(text)) {
    const std::uint32_t c = decode_character(character);
    constexpr std::string_view kShort = "\"\\\n\r\t\f\b", kLetters = "\"\\nrtfb";
    const std::size_t known = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      out += '\\';
      out += kLetters[known];
    } else if (c < 0x20) {
      append_hex(out, "\\u", c, 4);
    } else if (c < 0x80 || !ensure_ascii) {
      out += character;
    } else if (c < 0x10000) {
      append_hex(out, "\\u", c, 4);
    } else {
      append_hex(out, "\\u", 0xD800 + ((c - 0x10000) >> 10), 4);
      append_hex(out, "\\u", 0xDC00 + ((c - 0x10000) & 0x3FF), 4);
    }
  }
  return out + "\"";
}

}  // namespace rl
