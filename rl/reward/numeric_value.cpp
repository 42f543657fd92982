#include "rl/reward/numeric_value.h"

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>

#include "rl/reward/expression_reader.h"

namespace rl {
namespace {

using Real = long double;
using Complex = std::complex<Real>;

constexpr Real kUnit = 1e-18L;     // what an operation may be off, relatively
constexpr Real kSlack = 64;        // errors are estimates
constexpr Real kCertain = 1e-12L;  // a value that is less certain says nothing
constexpr Real kLargest = 1e30L;   // where every digit is lost to functions
constexpr Real kErrorMax = 0.25L;  // nor does one that could be the next whole number
constexpr int kPoints = 16;        // with signs that differ from letter to letter
constexpr std::int64_t kBinomialMax = 60;
constexpr std::int64_t kPowerMax = 64;
constexpr Real kPi = std::numbers::pi_v<Real>;

/// A number, how far it may be off, and what it is exactly where it was written as a fraction.
struct Number {
  Complex value;
  Real error = 0;
  std::optional<Rational> exact;
};

using MaybeNumber = std::optional<Number>;

MaybeNumber checked(Complex value, Real error) {
  error += kUnit * std::abs(value);
  if (!std::isfinite(error) || !std::isfinite(value.real()) || !std::isfinite(value.imag()) ||
      std::abs(value) > kLargest)
    return std::nullopt;
  // Else a number just below the real line would be beyond the cut of a root or a logarithm.
  if (std::abs(value.imag()) <= kSlack * error) value.imag(0);
  return Number{value, error, std::nullopt};
}

/// Each bit depends on all of `hash`; Steele, Lea and Flood 2014, "SplittableRandom".
std::uint64_t mixed(std::uint64_t hash) {
  hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9U;
  hash = (hash ^ hash >> 27) * 0x94D049BB133111EBU;
  return hash ^ hash >> 31;
}

/// f of it; the error by the slope of f there.
MaybeNumber applied(const Number& x, const std::function<Complex(Complex)>& f) {
  const Complex value = f(x.value);
  const Real step = 1e-7L * (1 + std::abs(x.value));
  const Real slope = std::abs(f(x.value + step) - value) / step;
  return checked(value, slope * x.error + 4 * kUnit * (1 + std::abs(value)));
}

MaybeNumber real_root(const Number& x, std::int64_t degree) {
  const bool flips = degree % 2 == 1 && x.value.imag() == 0 && x.value.real() < 0;
  if (std::abs(x.value) <= kSlack * x.error)
    return checked(0, std::pow(kSlack * x.error, 1 / static_cast<Real>(degree)));
  const Complex root = std::pow(flips ? -x.value : x.value, 1 / static_cast<Real>(degree));
  return checked(flips ? -root : root, std::abs(root) * (x.error / std::abs(x.value) + 4 * kUnit));
}

Complex circular(std::string_view name, Complex x) {
  if (name == "sin") return std::sin(x);
  if (name == "cos") return std::cos(x);
  if (name == "tan") return std::tan(x);
  if (name == "cot") return 1.0L / std::tan(x);
  if (name == "sec") return 1.0L / std::cos(x);
  if (name == "csc") return 1.0L / std::sin(x);
  if (name == "arcsin") return std::asin(x);
  if (name == "arccos") return std::acos(x);
  if (name == "arctan") return std::atan(x);
  if (name == "arccot") return kPi / 2 - std::atan(x);
  if (name == "arcsec") return std::acos(1.0L / x);
  if (name == "arccsc") return std::asin(1.0L / x);
  if (name == "sinh") return std::sinh(x);
  if (name == "cosh") return std::cosh(x);
  if (name == "tanh") return std::tanh(x);
  if (name == "cis") return std::exp(Complex(0, 1) * x);
  return std::exp(x);
}

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash ^ (hash >> 29);
}

/// Numbers at one of the points.
class Numerically {
 public:
  using Value = Number;

  explicit Numerically(int point) : point_(point) {}

  bool has_letters() const { return has_letters_; }

  MaybeNumber add(const Number& a, const Number& b) const {
    return checked(a.value + b.value, a.error + b.error);
  }
  MaybeNumber negate(const Number& a) const {
    MaybeNumber negative = checked(-a.value, a.error);
    if (negative && a.exact)
      negative->exact = make_rational(-a.exact->numerator, a.exact->denominator);
    return negative;
  }
  MaybeNumber multiply(const Number& a, const Number& b) const {
    return checked(a.value * b.value, std::abs(a.value) * b.error + std::abs(b.value) * a.error);
  }
  MaybeNumber divide(const Number& a, const Number& b) const {
    if (std::abs(b.value) <= kSlack * b.error) return std::nullopt;
    const Complex value = a.value / b.value;
    MaybeNumber quotient =
        checked(value, (a.error + std::abs(value) * b.error) / std::abs(b.value));
    if (quotient && is_whole(a) && is_whole(b))
      quotient->exact = make_rational(a.exact->numerator, b.exact->numerator);
    return quotient;
  }
  MaybeNumber raise(const Number& base, const Number& exponent) const {
    const auto constant = constant_of(exponent);
    if (constant && std::abs(constant->numerator) <= kPowerMax) {
      const MaybeNumber of =
          constant->denominator == 1 ? MaybeNumber(base) : real_root(base, constant->denominator);
      const MaybeNumber power = of ? whole_power(*of, std::abs(constant->numerator)) : std::nullopt;
      return power && constant->numerator < 0 ? divide({1, 0, std::nullopt}, *power) : power;
    }
    if (std::abs(base.value) <= kSlack * base.error) return std::nullopt;
    const Complex log = std::log(base.value), value = std::exp(exponent.value * log);
    return checked(value,
                   std::abs(value) * (std::abs(exponent.value) * base.error / std::abs(base.value) +
                                      std::abs(log) * exponent.error +
                                      4 * kUnit * (1 + std::abs(exponent.value * log))));
  }
  MaybeNumber root(const Number& a, std::int64_t degree) const { return real_root(a, degree); }
  MaybeNumber binomial(const Number& n, const Number& k) const {
    const auto lower = constant_of(k);
    if (!lower || lower->denominator != 1 || lower->numerator < 0 ||
        lower->numerator > kBinomialMax)
      return std::nullopt;
    MaybeNumber value = rational(1, 1);
    for (std::int64_t i = 0; value && i < lower->numerator; ++i) {
      const Number factor{n.value - static_cast<Real>(i), n.error, std::nullopt};
      value = multiply(*value, factor);
      if (value) value = divide(*value, {static_cast<Real>(i + 1), 0, std::nullopt});
    }
    return value;
  }
  MaybeNumber absolute(const Number& a) const { return checked(std::abs(a.value), a.error); }
  MaybeNumber rounded(const Number& a, bool up) const {
    if (a.value.imag() != 0) return std::nullopt;
    if (has_letters_)
      return std::nullopt;  // the points are no whole numbers, which these are about
    if (const auto constant = constant_of(a); constant && constant->denominator == 1) return a;
    return checked(up ? std::ceil(a.value.real()) : std::floor(a.value.real()), 0);
  }

  MaybeNumber symbol(const std::string& name) {
    if (name == "pi") return checked(kPi, 0);
    if (name == "e") return checked(std::numbers::e_v<Real>, 0);
    if (name == "i") return Number{Complex(0, 1), 0, std::nullopt};
    if (name == "infty") return std::nullopt;
    has_letters_ = true;
    const std::uint64_t hash = hash_of(name + "@" + std::to_string(point_));
    const Real size = 0.2L + 2 * static_cast<Real>(hash % 1'000'003) / 1'000'003;
    const bool negative = (mixed(hash) >> 63) != 0;
    return checked(negative ? -size : size, 0);
  }
  std::string text_of(const Number& a) const {
    return std::to_string(a.value.real()) + "," + std::to_string(a.value.imag());
  }
  std::optional<Rational> constant_of(const Number& a) const {
    if (a.exact) return a.exact;
    const Real whole = std::round(a.value.real());
    if (a.value.imag() != 0 || std::abs(whole) > 1e9L ||
        std::abs(a.value.real() - whole) > kSlack * a.error)
      return std::nullopt;
    return Rational{static_cast<std::int64_t>(whole), 1};
  }
  MaybeNumber rational(std::int64_t numerator, std::int64_t denominator) const {
    const auto exact = make_rational(numerator, denominator);
    if (!exact) return std::nullopt;
    MaybeNumber value =
        checked(static_cast<Real>(exact->numerator) / static_cast<Real>(exact->denominator), 0);
    if (value) value->exact = exact;
    return value;
  }
  MaybeNumber function(const std::string& name, const MaybeNumber& base,
                       const Number& inside) const {
    if (name == "exp" && !base) {
      const Complex value = std::exp(inside.value);
      return checked(value,
                     std::abs(value) * (inside.error + 4 * kUnit * (1 + std::abs(inside.value))));
    }
    if (name != "log" && name != "ln" && name != "lg")
      return base ? std::nullopt : applied(inside, [&](Complex x) { return circular(name, x); });
    const MaybeNumber above = logarithm(inside);
    if (name == "ln" && !base) return above;
    const MaybeNumber below = logarithm(base.value_or(Number{10, 0, std::nullopt}));
    return above && below ? divide(*above, *below) : std::nullopt;
  }

 private:
  static bool is_whole(const Number& a) { return a.exact && a.exact->denominator == 1; }
  MaybeNumber whole_power(const Number& base, std::int64_t exponent) const {
    MaybeNumber power = rational(1, 1);
    for (std::int64_t i = 0; power && i < exponent; ++i) power = multiply(*power, base);
    return power;
  }
  static MaybeNumber logarithm(const Number& x) {
    if (std::abs(x.value) <= kSlack * x.error) return std::nullopt;
    return checked(std::log(x.value), x.error / std::abs(x.value) + 4 * kUnit);
  }

  int point_;
  bool has_letters_ = false;
};

// Of values whose error reaches whole numbers even relatively small ones are not seen to differ.
bool is_certain(const Number& a) {
  return kSlack * a.error < kErrorMax &&
         kSlack * a.error <= kCertain * std::max(std::abs(a.value), Real{1});
}

}  // namespace

bool same_at_points(std::string_view a, std::string_view b) {
  if (!may_be_expression(a) || !may_be_expression(b)) return false;
  for (int point = 0; point < kPoints; ++point) {
    Numerically at(point);
    const MaybeNumber left = ExpressionReader(a, at).read(),
                      right = left ? ExpressionReader(b, at).read() : std::nullopt;
    if (!right || !is_certain(*left) || !is_certain(*right) ||
        std::abs(left->value - right->value) > kSlack * (left->error + right->error))
      return false;
    if (!at.has_letters()) break;
  }
  return true;
}

std::optional<double> real_value(std::string_view text) {
  if (!may_be_expression(text)) return std::nullopt;
  Numerically at(0);
  const MaybeNumber value = ExpressionReader(text, at).read();
  if (!value || at.has_letters() || value->value.imag() != 0) return std::nullopt;
  return static_cast<double>(value->value.real());
}

}  // namespace rl
