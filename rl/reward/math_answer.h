// Answers of mathematical problems: where they stand in a response, and whether two of them say the
// same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// What is inside the last \boxed{...} or \fbox{...} (also "\boxed 5"), braces matched; nullopt
/// when there is none or it doesn't end.
std::optional<std::string> last_boxed(std::string_view text);

/// An answer without what does not change its meaning (math_text.h): also without thousands commas,
/// "x =" before it, \dfrac and \tfrac. Percent and degree signs are gone as well, as verl's scorers
/// have it.
std::string normal_form(std::string_view answer);

/// Whether an answer says what a ground truth says: as texts in normal form, or as exact values
/// (fractions, roots, polynomials). Tuples, intervals, sets, lists, matrices and equations are
/// compared part by part. Lists without brackets and sets have no order.
bool equivalent(std::string_view answer, std::string_view truth);

}  // namespace rl
