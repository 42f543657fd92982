// Signs and words for degrees in answers. Pure functions.
#pragma once

#include <string>

namespace rl {

/// Writes all of them ("^\circ", "^{\text{o}}", "\text{ degrees}") as "\degree " where an angle is
/// the argument of a function. A function needs to know what its argument is measured in: "\sin
/// 30^\circ", "e^{i60^\circ}". Elsewhere drops the signs. Temperatures lose theirs with their
/// scale.
void write_degrees(std::string& text);

}  // namespace rl
