// Units behind quantities: "10 cm^2", "5 miles per hour", "12 square feet". Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rl {

/// Whether a word is a unit's name or sign, or one of the things that answers count ("students").
bool is_unit_word(std::string_view word);

/// Whether all of it is a unit: "km/h", "m\cdot s^{-1}", "square feet". Not "m" alone, which may be
/// a variable.
bool is_whole_unit(std::string_view text);

/// The same with "m" and "m\cdot s", whose letters may be variables.
bool may_be_unit(std::string_view text);

/// Where an exponent that begins at `at` ends ("^2", "^{-1}", "²", blanks before it): `at` itself
/// when there is none.
std::size_t end_of_unit_exponent(std::string_view text, std::size_t at);

/// Whether a quantity ends at the end of `text`: a number, a bracket, pi. With `symbols` a
/// variable, too.
bool ends_with_quantity(std::string_view text, bool symbols);

/// Without the units that stand in plain words behind quantities, with their exponents; those go to
/// `units`. One before a further number stays: "4 feet 6 inches" is not 46. "5 million" becomes
/// "5 \cdot 1000000".
std::string without_unit_words(std::string_view text, std::vector<std::string>& units);

}  // namespace rl
