// Mathematical answers without what LaTeX says of their looks.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// An answer in plain form: \left, \right, \displaystyle, $, sizes and spaces of LaTeX, \dfrac and
/// its kin, percent, degree and currency signs are gone, signs of Unicode are LaTeX's, \text{} and
/// upright letters are what they say, units behind quantities are gone with their exponents, lists
/// have commas ("1, 2, and 3", "1; 2"). A line end stands for the end of a matrix's row.
std::string plain_math(std::string_view answer);

}  // namespace rl
