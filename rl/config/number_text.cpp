#include "rl/config/number_text.h"

#include <cstdio>

namespace rl {

std::string number_text(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace rl
