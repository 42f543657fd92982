// The interval of numbers that a key takes, where it has no list of choices: "[1,)", "(0,1]", as
// rl/config/keys.inc writes them.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// An interval; a bound that is not there is infinite. "-1|[1,)" takes a number next to it.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  // `low` itself is not in it
  bool high_open = false;
  std::optional<double> extra = {};  // outside it, and taken too

  /// Nothing for a text that is no interval: a list of choices.
  static std::optional<NumberRange> parse(std::string_view text);

  bool contains(double number) const;

  /// "at least 1", "above 0", "from 1 to 1024", "in [0, 1)", "-1 or at least 1".
  std::string describe() const;
};

}  // namespace rl
