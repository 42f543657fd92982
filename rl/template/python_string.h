// Python's view of UTF-8 text: code points, blanks, case, and how values are printed. Bytes that
// are not UTF-8 count as one character each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

void append_code_point(std::string& out, std::uint32_t code_point);

/// How many bytes the character at the start of `text` has; `text` is not empty.
std::size_t character_size(std::string_view text);
std::int64_t count_characters(std::string_view text);
/// The characters, as views into `text`.
std::vector<std::string_view> split_characters(std::string_view text);
/// The code point of one character; a stray byte is itself.
std::uint32_t decode_character(std::string_view character);

/// How many bytes the last character has; `text` is not empty.
std::size_t last_character_size(std::string_view text);

/// Where `wanted` first or last stands, npos where it does not. In time linear in the two, unlike
/// std::string_view::find.
std::size_t find_text(std::string_view text, std::string_view wanted);
std::size_t find_last_text(std::string_view text, std::string_view wanted);
/// Calls `take` with each place of `wanted`, which is not empty, that overlaps none before; from
/// the end with `from_right`. It gives false to stop.
void each_occurrence(std::string_view text, std::string_view wanted, bool from_right,
                     const std::function<bool(std::size_t)>& take);

bool is_blank_character(std::string_view character);
bool is_word_character(std::string_view character);  // \w of Python's regular expressions: letters,
                                                     // numbers and the underscore

/// str.strip and its halves: of blanks, or of any of `characters` when given.
std::string_view strip_text(std::string_view text, bool left, bool right,
                            const std::string* characters = nullptr);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_casefolded(std::string_view text);
std::string to_swapped_case(std::string_view text);
std::string to_capitalized(std::string_view text);  // first character upper, the others lower
std::string to_title(std::string_view text);        // the same for every run of cased letters

/// str.isalpha and its like: every character has the property, and there is one.
enum class CharacterClass {
  kAlpha,
  kDecimal,  // 0 to 9 of any script
  kDigit,    // and superscripts, circled digits and the like
  kNumeric,  // and fractions, Roman numerals, ideographs of numbers
  kAlnum,
  kSpace,
  kUpper,
  kLower
};
bool is_all(std::string_view text, CharacterClass wanted);

/// str.splitlines.
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
/// At most N bytes do the lines take besides their text.
std::size_t line_bytes(std::string_view text);

std::string python_float(double value);                    // 1.0, 1e-06, inf
std::string python_string_literal(std::string_view text);  // 'it\'s'
/// ascii() of a value that has this repr.
std::string python_ascii(std::string_view text);
std::string json_string(std::string_view text, bool ensure_ascii);

}  // namespace rl
