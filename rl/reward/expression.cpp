#include "rl/reward/expression.h"

#include <cmath>
#include <string>
#include <utility>

#include "rl/reward/expression_reader.h"

namespace rl {
namespace {

using Value = std::optional<Quotient>;

/// A text by which symbols made of values ("sin(...)") are told apart.
std::string serialize(const Polynomial& polynomial) {
  std::string out;
  for (const auto& [monomial, coefficient] : polynomial.terms) {
    out += "+" + std::to_string(coefficient.numerator) + "/" +
           std::to_string(coefficient.denominator) + "r" + std::to_string(monomial.radicand);
    for (const auto& [symbol, exponent] : monomial.symbols)
      out += "*" + symbol + "^" + std::to_string(exponent);
  }
  return out;
}

std::string serialize(const Quotient& quotient) {
  if (const auto constant = constant_of(quotient))
    return std::to_string(constant->numerator) + "/" + std::to_string(constant->denominator);
  return serialize(quotient.numerator) + "|" + serialize(quotient.denominator);
}

/// The whole n-th root of a whole number, if it has one.
std::optional<std::int64_t> whole_root(std::int64_t value, std::int64_t degree) {
  if (value < 0 && degree % 2 == 0) return std::nullopt;
  const auto guess = static_cast<std::int64_t>(std::llround(
      std::pow(std::abs(static_cast<double>(value)), 1.0 / static_cast<double>(degree))));
  const Value back = power(*make_quotient({guess, 1}), degree);
  const auto constant = back ? constant_of(*back) : std::nullopt;
  if (!constant || constant->numerator != std::abs(value)) return std::nullopt;
  return value < 0 ? -guess : guess;
}

Value root(const Quotient& inside, std::int64_t degree) {
  if (degree == 2) {
    if (const Value value = square_root(inside)) return value;
  } else if (const auto constant = constant_of(inside); constant && degree > 2 && degree < 32) {
    const auto above = whole_root(constant->numerator, degree),
               below = whole_root(constant->denominator, degree);
    if (above && below) {
      const auto value = make_rational(*above, *below);
      return value ? make_quotient(*value) : std::nullopt;
    }
  }
  return make_symbol("root" + std::to_string(degree) + "(" + serialize(inside) + ")");
}

Value raise(const Quotient& base, const Quotient& exponent) {
  const auto constant = constant_of(exponent);
  if (constant && constant->denominator == 1) return power(base, constant->numerator);
  if (constant && constant->numerator > 0 && constant->denominator < 32) {
    const Value raised = power(base, constant->numerator);
    return raised ? root(*raised, constant->denominator) : std::nullopt;
  }
  return make_symbol("pow(" + serialize(base) + "," + serialize(exponent) + ")");
}

/// n over k as a number; nullopt where it is none, or large.
Value binomial(const Quotient& n, const Quotient& k) {
  const auto upper = constant_of(n), lower = constant_of(k);
  if (!upper || !lower || upper->denominator != 1 || lower->denominator != 1 ||
      upper->numerator < 0 || upper->numerator > 60 || lower->numerator < 0 ||
      lower->numerator > upper->numerator)
    return make_symbol("binom(" + serialize(n) + "," + serialize(k) + ")");
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= lower->numerator; ++i) {
    if (__builtin_mul_overflow(value, upper->numerator - lower->numerator + i, &value))
      return std::nullopt;
    value /= i;
  }
  return make_quotient({value, 1});
}

Value absolute(const Quotient& value) {
  if (const auto constant = constant_of(value))
    return constant->numerator < 0 ? negate(value) : Value(value);
  return make_symbol("abs(" + serialize(value) + ")");
}

Value to_whole(const Quotient& value, bool up) {
  const auto constant = constant_of(value);
  if (!constant) return make_symbol((up ? "ceil(" : "floor(") + serialize(value) + ")");
  std::int64_t whole = constant->numerator / constant->denominator;
  const bool exact = constant->numerator % constant->denominator == 0;
  if (!exact && up && constant->numerator > 0) ++whole;
  if (!exact && !up && constant->numerator < 0) --whole;
  return make_quotient({whole, 1});
}

// Functions of values are symbols, equal where name and argument are.
struct Exactly {
  using Value = Quotient;

  rl::Value add(const Quotient& a, const Quotient& b) const { return rl::add(a, b); }
  rl::Value negate(const Quotient& a) const { return rl::negate(a); }
  rl::Value multiply(const Quotient& a, const Quotient& b) const { return rl::multiply(a, b); }
  rl::Value divide(const Quotient& a, const Quotient& b) const { return rl::divide(a, b); }
  rl::Value raise(const Quotient& a, const Quotient& b) const { return rl::raise(a, b); }
  rl::Value root(const Quotient& a, std::int64_t degree) const { return rl::root(a, degree); }
  rl::Value binomial(const Quotient& n, const Quotient& k) const { return rl::binomial(n, k); }
  rl::Value absolute(const Quotient& a) const { return rl::absolute(a); }
  rl::Value rounded(const Quotient& a, bool up) const { return to_whole(a, up); }
  rl::Value symbol(const std::string& name) const { return make_symbol(name); }
  std::string text_of(const Quotient& a) const { return serialize(a); }
  std::optional<Rational> constant_of(const Quotient& a) const { return rl::constant_of(a); }
  rl::Value rational(std::int64_t numerator, std::int64_t denominator) const {
    const auto value = make_rational(numerator, denominator);
    return value ? make_quotient(*value) : std::nullopt;
  }
  rl::Value function(const std::string& name, const rl::Value& base, const Quotient& inside) const {
    if (name == "exp") return rl::raise(make_symbol("e"), inside);
    const std::string below = base ? "_" + serialize(*base) : "";
    return make_symbol(name + below + "(" + serialize(inside) + ")");
  }
};

}  // namespace

std::optional<Quotient> read_expression(std::string_view text) {
  if (!may_be_expression(text)) return std::nullopt;
  Exactly algebra;
  return ExpressionReader(text, algebra).read();
}

}  // namespace rl
