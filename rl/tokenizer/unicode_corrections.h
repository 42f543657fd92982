// Differences between Unicode in Hugging Face's tokenizers (0.23.3) and in utf8proc (15) and PCRE2
// (14). Models were trained with those tables, several of them, from Unicode 8 to 17.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rl {

/// No normal form there changes, moves or joins this character.
bool is_inert(char32_t c);

/// Categories M*, Mn, C* (without Cn) and N*, given what utf8proc says.
bool corrected_mark(char32_t c, bool mark);
bool corrected_nonspacing(char32_t c, bool mark);
bool corrected_other(char32_t c, bool other);
bool corrected_numeric(char32_t c, bool numeric);
bool corrected_word(char32_t c, bool word);  // \w

/// The small letter of a capital that utf8proc does not know; else `c`.
char32_t later_small_letter(char32_t c);

/// What patterns match in place of `text`: characters whose category PCRE2 does not know are others
/// of that category, as long in UTF-8. `storage` holds them where there are any.
std::string_view text_for_patterns(std::string_view text, std::string& storage);

}  // namespace rl
