// Exact arithmetic for comparing answers: quotients of polynomials with rational coefficients,
// square roots of whole numbers and symbols. Everything has a limit; what exceeds it (or divides by
// 0) gives nothing, and the caller compares texts instead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rl {

/// A fraction in lowest terms with a positive denominator.
struct Rational {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  bool operator==(const Rational&) const = default;
};

std::optional<Rational> make_rational(std::int64_t numerator, std::int64_t denominator);

/// What a coefficient stands before: sqrt(radicand) times symbols with their powers.
struct Monomial {
  std::int64_t radicand = 1;  // without square factors, positive
  std::map<std::string, std::int64_t> symbols;

  auto operator<=>(const Monomial&) const = default;
};

/// A sum of terms without zero coefficients, so that equal sums are equal values.
struct Polynomial {
  std::map<Monomial, Rational> terms;

  bool operator==(const Polynomial&) const = default;
};

/// One polynomial over another that is not 0.
struct Quotient {
  Polynomial numerator;
  Polynomial denominator;
};

std::optional<Quotient> make_quotient(Rational value);
Quotient make_symbol(const std::string& name);
std::optional<Quotient> add(const Quotient& a, const Quotient& b);
std::optional<Quotient> negate(const Quotient& a);
std::optional<Quotient> multiply(const Quotient& a, const Quotient& b);
std::optional<Quotient> divide(const Quotient& a, const Quotient& b);
std::optional<Quotient> power(const Quotient& base, std::int64_t exponent);
/// Of a rational constant that is not negative.
std::optional<Quotient> square_root(const Quotient& a);

/// The value when it is a rational constant.
std::optional<Rational> constant_of(const Quotient& a);

/// The rational number that b times it is a: "a = 0" and "b = 0" say the same where there is one.
/// nullopt: there is none, a or b is 0, or a limit was hit.
std::optional<Rational> ratio_of(const Quotient& a, const Quotient& b);

/// Whether a and b are the same, by cross-multiplication; nullopt when a limit was hit.
std::optional<bool> same_value(const Quotient& a, const Quotient& b);

}  // namespace rl
