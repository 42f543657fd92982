// The names of units of measure: "centimetre" and "cm" are one.
#pragma once

#include <string_view>

namespace rl {

/// The sign of a unit by its name or sign in small letters and in the singular. Of one with two
/// parts ("mph") it is both, with a blank between them. Empty: it is none of those that are known,
/// which may be any unit. Among these are names of several units ("pound").
std::string_view unit_sign(std::string_view word);

}  // namespace rl
