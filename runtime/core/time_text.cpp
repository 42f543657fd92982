#include "runtime/core/time_text.h"

#include <cstdio>
#include <ctime>

namespace runtime {

std::string time_text(std::uint64_t unix_milliseconds) {
  if (unix_milliseconds == 0) return "";
  const std::time_t seconds = static_cast<std::time_t>(unix_milliseconds / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%03uZ",
                static_cast<unsigned>(unix_milliseconds % 1000));
  return std::string(text, size) + fraction;
}

}  // namespace runtime
