// Units of the members of an answer: (3 cm, 4 m) is not (3 m, 4 cm).
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace rl {

/// Whether two members, as they are written, are equal but for their units.
using SameValue = std::function<bool(const std::string& a, const std::string& b)>;

/// Whether members that belong together have different units (have_different_units), where both
/// answers have as many. Those of tuples and intervals belong together by their places, those of
/// sets and lists by their values. False where an answer has no units, or one member.
bool have_members_of_different_units(std::string_view a, std::string_view b,
                                     const SameValue& same_value);

}  // namespace rl
