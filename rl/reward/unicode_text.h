// Characters of Unicode in answers, as the ASCII and the LaTeX that say the same. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace rl {

/// Full-width digits, letters and signs as ASCII ("１２％" is "12%"), without characters that do
/// not show (zero-width blanks and joiners). Full-width commas and semicolons stay: they separate
/// members, and "1，5" is no decimal.
std::string with_ascii_forms(std::string_view text);

/// Signs as LaTeX: "≤" as "\le ", "10⁻²" as "10^{-2}", "x₁" as "x_1", "⅓" as "\frac{1}{3}", "√12"
/// as "\sqrt{12}". Blanks of any width become plain ones, and currency signs go.
std::string with_latex_signs(std::string_view text);

}  // namespace rl
