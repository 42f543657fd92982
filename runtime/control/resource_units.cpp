#include "runtime/control/resource_units.h"

#include <cstdio>

namespace runtime {

std::string resource_text(std::int64_t units) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld", static_cast<long long>(units / kResourceUnitsPerOne));
  std::string out = text;
  if (const std::int64_t rest = units % kResourceUnitsPerOne; rest != 0) {
    std::snprintf(text, sizeof text, ".%04lld", static_cast<long long>(rest));
    out += text;
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out;
}

}  // namespace runtime
