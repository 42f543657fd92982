// Numbers for messages to people.
#pragma once

#include <string>

namespace rl {

/// "0.5", "1e-06": at most `digits` significant ones.
std::string number_text(double value, int digits = 6);

}  // namespace rl
