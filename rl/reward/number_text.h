// Numbers as people write them in answers. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "rl/reward/written_number.h"

namespace rl {

/// Without blanks at both ends.
std::string_view trim(std::string_view text);

/// The number that a text ends with: signs, decimals, thousands commas, a power of ten ("1e-05"), a
/// leading "$" and a trailing "." or "%" are understood. Empty when there is none.
std::string last_number(std::string_view text);

/// The number right at the beginning of a text ("$1,042 apples" -> "1042"). Empty when there is
/// none.
std::string leading_number(std::string_view text);

/// The same with "-" for the signs that look like it: U+2212, and dashes.
std::string with_plain_minus(std::string_view text);

/// A ground truth that is one number and nothing else but currency, percent and blanks, or GSM8K's
/// solution that ends with "#### number".
std::optional<WrittenNumber> number_of_truth(std::string_view text);

}  // namespace rl
