// Names of what an answer says: "x" of "x = 5". Pure functions of plain_math()'s form.
#pragma once

#include <string_view>

namespace rl {

/// Whether two answers name different things before their values: "x = 3" and "y = 3", "f(1) = 5"
/// and "f(2) = 5". False where one has no name, and of names that may mean the same: "y" and
/// "f(x)", "n" and "N", "x" and "x_1", and words.
bool have_different_names(std::string_view a, std::string_view b);

}  // namespace rl
