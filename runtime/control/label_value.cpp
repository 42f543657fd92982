#include "runtime/control/label_value.h"

#include <algorithm>

namespace runtime {

Status check_label_value(const std::string& value) {
  const bool is_plain = !value.starts_with('!') && !value.starts_with("in(") && value != "*" &&
                        value.find(',') == std::string::npos;
  if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return invalid_argument("it has control characters in it");
  return is_plain ? Status()
                  : invalid_argument(
                        "a value with a comma, or that begins like a selector ('!', 'in(', '*'), "
                        "could not be asked for");
}

}  // namespace runtime
