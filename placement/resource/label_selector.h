// Selectors: conditions on a node's labels.
#pragma once

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace placement {

/// A wanted label's value says what the node's has to be:
///   "a"          that
///   "!a"         another, or none
///   "in(a, b)"   one of these
///   "!in(a, b)"  none of these
///   "*"          any, if only it is there
///   "!*"         it must not be there
/// Errors: kInvalidArgument naming the selector: an empty name, a list that is not closed or empty.
runtime::Status check_selectors(const runtime::Labels& wanted);

/// Those that the node's labels do not meet. They must have passed check_selectors().
runtime::Labels unmet(const runtime::Labels& offered, const runtime::Labels& wanted);
/// Whether the offered labels meet the wanted ones; cheaper than unmet().
bool meets(const runtime::Labels& offered, const runtime::Labels& wanted);

/// "zone=a, kind=in(fast, faster)"
std::string to_string(const runtime::Labels& labels);

}  // namespace placement
