// The numeric value of a formula: for formulas whose exact forms do not show that they are
// equal.
#pragma once

#include <optional>
#include <string_view>

namespace rl {

/// Whether two formulas come to the same at several points, where their letters are numbers of
/// either sign. Such are \sin^2 x + \cos^2 x and 1, \ln 2 + \ln 3 and \ln 6. Letters are real,
/// functions take their principal values, and odd roots of negative numbers are real. False also
/// where a formula has no value, or none that is certain to 12 digits.
bool same_at_points(std::string_view a, std::string_view b);

/// The value of a formula without letters (but for pi and e) that is a real number.
std::optional<double> real_value(std::string_view text);

}  // namespace rl
