// Numbers written with separators between groups of three digits. Pure functions.
#pragma once

#include <string>

namespace rl {

/// Which commas separate thousands: all that can, or only those that can be nothing else, since no
/// member of a list begins with 0 ("1,000").
enum class Groups { kAll, kCertain };

/// "1,234", "1 234" and "(1,234, 5)" as 1234 and (1234, 5); "1,23", "1 0", the list "200,100,5" and
/// the point "(1,234)" stay as they are.
std::string without_thousands_separators(std::string text, Groups groups = Groups::kAll);

}  // namespace rl
