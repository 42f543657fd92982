// Reads what stands in a formula, LaTeX or plain, as an exact value.
#pragma once

#include <optional>
#include <string_view>

#include "rl/reward/polynomial.h"

namespace rl {

/// The value of "\frac{1}{2}", "\frac12", "1/2", "0.5", "2\sqrt3", "(x+1)^2", "3\times10^{5}",
/// "1\frac12" (a mixed number), "\log_2 3" (a symbol). nullopt: it is no such formula (a sentence,
/// a list, an equation), or too large for exact arithmetic.
std::optional<Quotient> read_expression(std::string_view text);

}  // namespace rl
