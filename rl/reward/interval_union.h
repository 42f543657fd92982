// Unions of intervals and of finite sets of numbers: "(0,1]\cup[1,3)" is (0,3). Pure functions of
// plain_math()'s form.
#pragma once

#include <string>
#include <vector>

namespace rl {

/// Whether the unions of two lists of sets have the same numbers. False also where a part is no
/// interval or set, or has a bound with letters.
bool same_union_of_intervals(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace rl
