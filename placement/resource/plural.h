// Counts of things for messages to people.
#pragma once

#include <cstddef>
#include <string>

namespace placement {

/// "1 bundle", "2 bundles".
inline std::string plural(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace placement
