// Other notations for intervals and sets. Pure functions of plain_math()'s form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// "]1,2[" as "(1,2)", "[0,1[" as "[0,1)": brackets that are turned away from an open end.
std::string with_round_brackets(std::string text);

/// "x > 2" of "\{x \mid x > 2\}" and "\{x \in R : x > 2\}", where all the conditions are
/// inequalities of the name before them. nullopt: it is no such set.
std::optional<std::string> condition_of_set(std::string_view text);

}  // namespace rl
