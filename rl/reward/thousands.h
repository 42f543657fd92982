// Numbers written with separators between groups of three digits. Pure functions.
#pragma once

#include <string>

namespace rl {

/// "1,234" and "1 234" as 1234; "1,23", "1 0" and "(1,234)" stay as they are.
std::string without_thousands_separators(std::string text);

}  // namespace rl
