// Words behind a number: units and counted things, which may be left out, and factors ("million").
// All others make another quantity ("squared", "north", "is not a solution"). Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

/// Factors and powers at the beginning of words, as LaTeX behind a number, and where the rest of
/// the words begins.
struct LeadingScale {
  std::string latex;
  std::size_t end = 0;
};

/// "million" as "\cdot 1000000", "hundred thousand dollars" as two factors before "dollars", "half"
/// as "\cdot\frac{1}{2}", "squared" alone as "^{2}", "factorial" alone as "!". Empty: there is
/// none.
LeadingScale leading_scale(std::string_view words);

/// "and a half", "and three quarters of an hour": a fraction that is added to the number before it,
/// as LaTeX of a mixed number. Empty: there is none.
LeadingScale leading_fraction(std::string_view words);

/// "million", "dozens": whether the word is a factor.
bool is_factor_word(std::string_view word);

/// Whether words cannot be left out: negations, comparisons, directions, numbers, "or more", "and a
/// half".
bool changes_quantity(std::string_view words);

/// Whether two answers count or measure different things, by the words that are left out of each:
/// "apples" and "pears", "a.m." and "p.m.", "cm" and "m". False where one has none, and where one
/// may be any unit: measures that unit_sign() does not know, and words such as "ways".
bool have_different_units(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace rl
