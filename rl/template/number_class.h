// Characters that are digits or numbers without a separate category for it: superscripts and
// circled digits, and ideographs that stand for a number.
#pragma once

#include <cstdint>

namespace rl {

/// Whether the character, of category No, is one digit: Unicode's Numeric_Type is Digit.
bool is_other_digit(std::uint32_t character);
/// Whether the character, of category Lo, has a numeric value.
bool is_numeric_letter(std::uint32_t character);

}  // namespace rl
