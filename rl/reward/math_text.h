// Mathematical answers without what LaTeX says of their looks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rl {

/// An answer in plain form: \left, \right, \displaystyle, $, sizes and spaces of LaTeX, \dfrac and
/// its kin, percent, degree and currency signs are gone. Signs of Unicode are LaTeX's, and \text{}
/// and upright letters are what they say. Units behind quantities are gone with their exponents,
/// and "million" is a factor. Lists have commas ("1, 2, and 3", "1; 2"). A line end stands for the
/// end of a matrix's row.
std::string plain_math(std::string_view answer);

/// The same with the words that are gone from behind quantities.
struct ReadMath {
  std::string text;
  std::vector<std::string> units;
};

ReadMath read_math(std::string_view answer);

}  // namespace rl
