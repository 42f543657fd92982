#include "rl/reward/written_number.h"

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <limits>

namespace rl {
namespace {

constexpr std::int64_t kPowerOfTenMax = 1'000'000;
constexpr std::size_t kDigitsWrittenMax = 40;

/// Of "-05" or "+16".
std::optional<std::int64_t> parse_exponent(std::string_view written) {
  if (written.starts_with('+') && !written.starts_with("+-")) written.remove_prefix(1);
  std::int64_t exponent = 0;
  const char* const end = written.data() + written.size();
  const auto [last, error] = std::from_chars(written.data(), end, exponent);
  if (error != std::errc() || last != end || exponent > kPowerOfTenMax ||
      exponent < -kPowerOfTenMax)
    return std::nullopt;
  return exponent;
}

}  // namespace

std::optional<WrittenNumber> WrittenNumber::parse(std::string_view written) {
  WrittenNumber number;
  if (written.starts_with('-') || written.starts_with('+')) {
    number.negative_ = written.front() == '-';
    written.remove_prefix(1);
  }
  if (const std::size_t mark = written.find_first_of("eE"); mark != written.npos) {
    const std::optional<std::int64_t> exponent = parse_exponent(written.substr(mark + 1));
    if (!exponent) return std::nullopt;
    number.exponent_ = *exponent;
    written = written.substr(0, mark);
  }
  number.digits_ = written;
  if (const std::size_t point = written.find('.'); point != written.npos) {
    number.digits_.erase(point, 1);
    number.exponent_ -= static_cast<std::int64_t>(written.size() - point - 1);
  }
  if (number.digits_.empty() || number.digits_.find_first_not_of("0123456789") != written.npos)
    return std::nullopt;
  number.digits_.erase(0, number.digits_.find_first_not_of('0'));
  if (number.digits_.empty()) return WrittenNumber();
  const std::size_t size = number.digits_.find_last_not_of('0') + 1;
  number.exponent_ += static_cast<std::int64_t>(number.digits_.size() - size);
  number.digits_.resize(size);
  return number;
}

std::string WrittenNumber::scientific() const {
  const std::string digits = digits_.empty() ? "0" : digits_;
  return (negative_ ? "-" : "") + digits + "e" + std::to_string(exponent_);
}

double WrittenNumber::value() const {
  const std::string written = scientific();
  double value = 0;
  const auto [last, error] =
      std::from_chars(written.data(), written.data() + written.size(), value);
  if (error == std::errc()) return value;
  const bool tiny = static_cast<std::int64_t>(digits_.size()) + exponent_ <= 0;
  const double size = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return negative_ ? -size : size;
}

std::string WrittenNumber::text() const {
  if (!is_integer()) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.15g", value());
    return digits;
  }
  if (digits_.empty()) return "0";
  const auto zeros = static_cast<std::size_t>(exponent_);
  if (digits_.size() + zeros > kDigitsWrittenMax) return scientific();
  return (negative_ ? "-" : "") + digits_ + std::string(zeros, '0');
}

std::string WrittenNumber::latex() const {
  const std::string digits = digits_.empty() ? "0" : digits_;
  return (negative_ ? "-" : "") + digits + " \\cdot 10^{" + std::to_string(exponent_) + "}";
}

}  // namespace rl
