// Python's view of UTF-8 text: code points, blanks, case, and how values are printed. Bytes that
// are not UTF-8 count as one character each.
#pragma once

#include <cstdint>
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
std::string to_title(std::string_view text);        // the same for every run of letters

/// str.isalpha and its like: every character has the property, and there is one.
enum class CharacterClass { kAlpha, kDigit, kAlnum, kSpace, kUpper, kLower };
bool is_all(std::string_view text, CharacterClass wanted);

/// str.splitlines.
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

std::string python_float(double value);                    // 1.0, 1e-06, inf
std::string python_string_literal(std::string_view text);  // 'it\'s'
std::string json_string(std::string_view text, bool ensure_ascii);

}  // namespace rl
