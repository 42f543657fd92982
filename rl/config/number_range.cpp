#include "rl/config/number_range.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/core/check.h"

namespace rl {
namespace {

double read_bound(std::string_view text, double absent) {
  if (text.empty()) return absent;
  const auto number = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  CHECK(number.is_number());  // of a table in this program
  return number.get<double>();
}

// 1024 and not 1024.0.
std::string show_number(double number) {
  return number == std::floor(number) ? nlohmann::json(static_cast<std::int64_t>(number)).dump()
                                      : nlohmann::json(number).dump();
}

}  // namespace

std::optional<NumberRange> NumberRange::parse(std::string_view text) {
  NumberRange range;
  const std::size_t bar = text.find('|');
  const std::string_view first = text.substr(0, bar == std::string_view::npos ? 0 : bar);
  if (const auto number = nlohmann::json::parse(first, nullptr, /*allow_exceptions=*/false);
      number.is_number()) {
    range.extra = number.get<double>();
    text.remove_prefix(bar + 1);
  }
  const std::size_t comma = text.find(',');
  const bool interval = comma != std::string_view::npos &&
                        (text.front() == '[' || text.front() == '(') &&
                        (text.back() == ']' || text.back() == ')');
  if (!interval) return std::nullopt;
  range.low = read_bound(text.substr(1, comma - 1), range.low);
  range.high = read_bound(text.substr(comma + 1, text.size() - comma - 2), range.high);
  range.low_open = text.front() == '(';
  range.high_open = text.back() == ')';
  return range;
}

bool NumberRange::contains(double number) const {
  if (number == extra) return true;
  return (low_open ? number > low : number >= low) && (high_open ? number < high : number <= high);
}

std::string NumberRange::describe() const {
  const std::string either = extra ? show_number(*extra) + " or " : "";
  if (std::isinf(high)) return either + (low_open ? "above " : "at least ") + show_number(low);
  if (!low_open && !high_open && high > 1)
    return either + "from " + show_number(low) + " to " + show_number(high);
  return either + "in " + (low_open ? "(" : "[") + show_number(low) + ", " + show_number(high) +
         (high_open ? ")" : "]");
}

}  // namespace rl
