#include "runtime/core/duration.h"

#include <charconv>
#include <cmath>

namespace runtime {

namespace {
constexpr std::chrono::milliseconds kMost = std::chrono::hours(24);
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return invalid_argument("'" + std::string(text.substr(0, 40)) + "' is not a duration" + why +
                            ": expected a number and ms, s, min or h, like 30s");
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0)
    return wrong(number < 0 ? " (below zero)" : "");
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  double ms = 0;
  if (unit == "ms")
    ms = 1;
  else if (unit == "s" || unit.empty())
    ms = 1e3;
  else if (unit == "m" || unit == "min")
    ms = 60e3;
  else if (unit == "h")
    ms = 3600e3;
  else
    return wrong("");
  if (number * ms > static_cast<double>(kMost.count())) return wrong(" (above 24 h)");
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(number * ms)));
}

std::string describe_duration(std::chrono::milliseconds duration) {
  const auto ms = duration.count();
  if (ms < 1000) return std::to_string(ms) + " ms";
  if (ms < 600'000) return std::to_string((ms + 500) / 1000) + " s";
  return std::to_string((ms + 30'000) / 60'000) + " min";
}

}  // namespace runtime
