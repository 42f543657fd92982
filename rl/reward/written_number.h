// A decimal number as its digits say it, without rounding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rl {

/// A value. "1.50", "+1.5" and "15e-1" are equal.
class WrittenNumber {
 public:
  /// Of digits without separators: "-1234.50", "1e-05". nullopt: something else, or a power of ten
  /// beyond a million.
  static std::optional<WrittenNumber> parse(std::string_view written);

  /// Of the ten by which its digits are multiplied, which end in no zero.
  std::int64_t exponent() const { return exponent_; }

  bool is_integer() const { return exponent_ >= 0; }

  /// The nearest of double precision; infinite where there is none.
  double value() const;

  /// As people write it: an integer with all its digits, where these are no more than 40, and a
  /// fraction with 15.
  std::string text() const;

  /// Exactly, as a formula: "-15 \cdot 10^{-1}".
  std::string latex() const;

  bool operator==(const WrittenNumber&) const = default;

 private:
  std::string scientific() const;

  bool negative_ = false;
  std::string digits_;         // without zeros at either end; none: it is zero
  std::int64_t exponent_ = 0;  // of the ten by which the digits are multiplied
};

}  // namespace rl
