#include "rl/reward/polynomial.h"

#include <limits>
#include <numeric>
#include <utility>

namespace rl {
namespace {

constexpr std::size_t kTermsMax = 64;
constexpr std::int64_t kExponentMax = 64;
constexpr std::int64_t kRadicandMax = 1'000'000'000;  // factored by trial division

std::optional<std::int64_t> times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<Rational> add(Rational a, Rational b) {
  const auto left = times(a.numerator, b.denominator), right = times(b.numerator, a.denominator);
  const auto denominator = times(a.denominator, b.denominator);
  std::int64_t sum = 0;
  if (!left || !right || !denominator || __builtin_add_overflow(*left, *right, &sum))
    return std::nullopt;
  return make_rational(sum, *denominator);
}

std::optional<Rational> multiply(Rational a, Rational b) {
  // Crosswise first, so that intermediate products stay small.
  const auto first = make_rational(a.numerator, b.denominator),
             second = make_rational(b.numerator, a.denominator);
  if (!first || !second) return std::nullopt;
  const auto numerator = times(first->numerator, second->numerator),
             denominator = times(first->denominator, second->denominator);
  if (!numerator || !denominator) return std::nullopt;
  return make_rational(*numerator, *denominator);
}

/// sqrt(value) as whole * sqrt(radicand).
std::optional<std::pair<std::int64_t, std::int64_t>> extract_square(std::int64_t value) {
  if (value < 0 || value > kRadicandMax) return std::nullopt;
  std::int64_t whole = 1;
  for (std::int64_t factor = 2; factor * factor <= value; ++factor) {
    while (value % (factor * factor) == 0) {
      value /= factor * factor;
      whole *= factor;
    }
  }
  return std::pair(whole, value);
}

bool add_term(Polynomial& sum, const Monomial& monomial, Rational coefficient) {
  const auto [term, added] = sum.terms.emplace(monomial, coefficient);
  if (!added) {
    const auto total = add(term->second, coefficient);
    if (!total) return false;
    term->second = *total;
  }
  if (term->second.numerator == 0) sum.terms.erase(term);
  return sum.terms.size() <= kTermsMax;
}

std::optional<Polynomial> add(const Polynomial& a, const Polynomial& b) {
  Polynomial sum = a;
  for (const auto& [monomial, coefficient] : b.terms) {
    if (!add_term(sum, monomial, coefficient)) return std::nullopt;
  }
  return sum;
}

std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (const auto& [left, left_coefficient] : a.terms) {
    for (const auto& [right, right_coefficient] : b.terms) {
      const auto radicand = times(left.radicand, right.radicand);
      const auto root = radicand ? extract_square(*radicand) : std::nullopt;
      auto coefficient = multiply(left_coefficient, right_coefficient);
      if (!root || !coefficient) return std::nullopt;
      coefficient = multiply(*coefficient, {root->first, 1});
      Monomial monomial{root->second, left.symbols};
      for (const auto& [symbol, exponent] : right.symbols) {
        std::int64_t& total = monomial.symbols[symbol];
        total += exponent;
        if (total > kExponentMax) return std::nullopt;
      }
      if (!coefficient || !add_term(product, monomial, *coefficient)) return std::nullopt;
    }
  }
  return product;
}

Polynomial one() { return {{{Monomial{}, Rational{1, 1}}}}; }

std::optional<Quotient> over(std::optional<Polynomial> numerator,
                             std::optional<Polynomial> denominator) {
  if (!numerator || !denominator || denominator->terms.empty()) return std::nullopt;
  return Quotient{std::move(*numerator), std::move(*denominator)};
}

}  // namespace

std::optional<Rational> make_rational(std::int64_t numerator, std::int64_t denominator) {
  constexpr std::int64_t kLowest =
      std::numeric_limits<std::int64_t>::min();  // its absolute value is no int64
  if (denominator == 0 || numerator == kLowest || denominator == kLowest) return std::nullopt;
  const std::int64_t divisor = std::gcd(numerator, denominator) * (denominator < 0 ? -1 : 1);
  return Rational{numerator / divisor, denominator / divisor};
}

std::optional<Quotient> make_quotient(Rational value) {
  Quotient quotient{{}, one()};
  if (value.numerator != 0) quotient.numerator.terms.emplace(Monomial{}, value);
  return quotient;
}

Quotient make_symbol(const std::string& name) {
  return {{{{Monomial{1, {{name, 1}}}, Rational{1, 1}}}}, one()};
}

std::optional<Quotient> add(const Quotient& a, const Quotient& b) {
  if (a.denominator == b.denominator) return over(add(a.numerator, b.numerator), a.denominator);
  const auto left = multiply(a.numerator, b.denominator),
             right = multiply(b.numerator, a.denominator);
  if (!left || !right) return std::nullopt;
  return over(add(*left, *right), multiply(a.denominator, b.denominator));
}

std::optional<Quotient> negate(const Quotient& a) {
  Quotient negative = a;
  for (auto& [monomial, coefficient] : negative.numerator.terms)
    coefficient.numerator = -coefficient.numerator;
  return negative;
}

std::optional<Quotient> multiply(const Quotient& a, const Quotient& b) {
  return over(multiply(a.numerator, b.numerator), multiply(a.denominator, b.denominator));
}

std::optional<Quotient> divide(const Quotient& a, const Quotient& b) {
  return over(multiply(a.numerator, b.denominator), multiply(a.denominator, b.numerator));
}

std::optional<Quotient> power(const Quotient& base, std::int64_t exponent) {
  if (exponent > kExponentMax || exponent < -kExponentMax) return std::nullopt;
  std::optional<Quotient> result = make_quotient({1, 1});
  for (std::int64_t i = 0; i < std::abs(exponent) && result; ++i) result = multiply(*result, base);
  if (result && exponent < 0) result = divide(*make_quotient({1, 1}), *result);
  return result;
}

std::optional<Quotient> square_root(const Quotient& a) {
  const auto value = constant_of(a);
  if (!value || value->numerator < 0) return std::nullopt;
  if (value->numerator == 0) return a;
  const auto inside = times(value->numerator, value->denominator);  // sqrt(n/d) = sqrt(n d) / d
  const auto root = inside ? extract_square(*inside) : std::nullopt;
  const auto coefficient = root ? make_rational(root->first, value->denominator) : std::nullopt;
  if (!coefficient) return std::nullopt;
  return Quotient{{{{Monomial{root->second, {}}, *coefficient}}}, one()};
}

std::optional<Rational> constant_of(const Quotient& a) {
  if (a.numerator.terms.empty()) return Rational{};
  if (a.numerator.terms.size() > 1 || a.denominator.terms.size() > 1) return std::nullopt;
  const auto& [above, dividend] = *a.numerator.terms.begin();
  const auto& [below, divisor] = *a.denominator.terms.begin();
  if (above != below) return std::nullopt;
  return multiply(dividend, {divisor.numerator < 0 ? -divisor.denominator : divisor.denominator,
                             std::abs(divisor.numerator)});
}

std::optional<Rational> ratio_of(const Quotient& a, const Quotient& b) {
  const auto left = multiply(a.numerator, b.denominator),
             right = multiply(b.numerator, a.denominator);
  if (!left || !right || left->terms.empty() || left->terms.size() != right->terms.size())
    return std::nullopt;
  std::optional<Rational> ratio;
  for (const auto& [monomial, coefficient] : left->terms) {
    const auto other = right->terms.find(monomial);
    if (other == right->terms.end()) return std::nullopt;
    const Rational& below = other->second;
    const auto inverse = make_rational(below.denominator, below.numerator);
    const auto one = inverse ? multiply(coefficient, *inverse) : std::nullopt;
    if (!one || (ratio && *ratio != *one)) return std::nullopt;
    ratio = one;
  }
  return ratio;
}

std::optional<bool> same_value(const Quotient& a, const Quotient& b) {
  const auto left = multiply(a.numerator, b.denominator),
             right = multiply(b.numerator, a.denominator);
  if (!left || !right) return std::nullopt;
  return *left == *right;
}

}  // namespace rl
