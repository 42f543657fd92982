#include "rl/reward/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "rl/reward/characters.h"

namespace rl {
namespace {

using Value = std::optional<Quotient>;

constexpr std::size_t kExpressionBytesMax = 1000;
constexpr int kExpressionDepthMax = 40;

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

constexpr std::string_view kFunctionNames[] = {
    "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "sinh", "cosh", "tanh", "sqrt",
    "sin",    "cos",    "tan",    "cot",    "sec",    "csc",    "log",  "ln",   "lg",   "exp"};

/// The function that a word names, or begins with before one letter ("sinx"); empty: none.
std::string_view function_of(std::string_view word) {
  for (const std::string_view name : kFunctionNames) {
    if (word == name || (word.starts_with(name) && word.size() == name.size() + 1)) return name;
  }
  return {};
}

bool has_inverse_name(std::string_view function) {
  return function == "sin" || function == "cos" || function == "tan" || function == "cot" ||
         function == "sec" || function == "csc";
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

/// Recursive descent: one function for each rule of the grammar, hence their number.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Value read() {
    Value value = sum();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    // "\in" isn't the beginning of "\infty".
    if (word.size() > 1 && is_letter(word.back()) && at_ + word.size() < text_.size() &&
        is_letter(text_[at_ + word.size()]))
      return false;
    at_ += word.size();
    return true;
  }

  Value sum() {
    if (depth_ > kExpressionDepthMax) return std::nullopt;
    ++depth_;
    Value total = product();
    while (total && (peek() == '+' || peek() == '-')) {
      const bool minus = text_[at_++] == '-';
      Value next = product();
      if (next && minus) next = negate(*next);
      total = next ? add(*total, *next) : std::nullopt;
    }
    --depth_;
    return total;
  }

  Value product() {
    if (take("-")) {
      const Value value = nested(&Reader::product);
      return value ? negate(*value) : std::nullopt;
    }
    if (take("+")) return nested(&Reader::product);
    Value total = factor();
    while (total) {
      if (take("\\cdot") || take("\\times") || take("*") || take("×") || take("·")) {
        const Value next = signed_factor();
        total = next ? multiply(*total, *next) : std::nullopt;
      } else if (take("\\div") || take("/") || take("÷")) {
        const Value next = signed_factor();
        total = next ? divide(*total, *next) : std::nullopt;
      } else if (starts_atom()) {
        const Value next = factor();
        total = next ? multiply(*total, *next) : std::nullopt;
      } else {
        break;
      }
    }
    return total;
  }

  Value nested(Value (Reader::*rule)()) {
    if (depth_ > kExpressionDepthMax) return std::nullopt;
    ++depth_;
    Value value = (this->*rule)();
    --depth_;
    return value;
  }

  Value signed_factor() {
    if (!take("-")) return factor();
    const Value value = factor();
    return value ? negate(*value) : std::nullopt;
  }

  // Two numbers side by side are no product.
  bool starts_atom() {
    const char c = peek();
    if (is_digit(c) || c == '.')
      return at_ > 0 && !is_digit(text_[at_ - 1]) && text_[at_ - 1] != ' ' && text_[at_ - 1] != '.';
    return c == '(' || c == '{' || c == '\\' || is_letter(c) || (c == '|' && bars_ == 0);
  }

  Value factor() {
    skip();
    const std::size_t begin = at_;
    Value value = nested(&Reader::atom);
    if (value && is_whole(begin, at_) && peek() == '\\' &&
        (text_.substr(at_).starts_with("\\frac")))
      value = mixed(*value);
    while (value) {
      if (take("^") || take("**")) {
        const Value exponent = exponent_argument();
        value = exponent ? raise(*value, *exponent) : std::nullopt;
      } else if (take("!")) {
        value = factorial(*value);
      } else {
        break;
      }
    }
    return value;
  }

  bool is_whole(std::size_t begin, std::size_t end) const {
    return begin < end && std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                      text_.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
  }

  // "1\frac{1}{2}" is one and a half.
  Value mixed(const Quotient& whole) {
    const std::size_t begin = at_;
    const Value part = atom();
    const auto constant = part ? constant_of(*part) : std::nullopt;
    if (constant && constant->numerator > 0 && constant->numerator < constant->denominator)
      return add(whole, *part);
    at_ = begin;
    return whole;
  }

  Value factorial(const Quotient& value) {
    const auto constant = constant_of(value);
    if (!constant || constant->denominator != 1 || constant->numerator < 0 ||
        constant->numerator > 20)
      return std::nullopt;
    std::int64_t product = 1;
    for (std::int64_t i = 2; i <= constant->numerator; ++i) product *= i;
    return make_quotient({product, 1});
  }

  Value atom() {
    const char c = peek();
    if (is_digit(c) || c == '.') return number();
    if (c == '(') return bracketed("(", ")");
    if (c == '{') return bracketed("{", "}");
    if (c == '|') return between_bars();
    if (c == '\\') return command();
    if (is_letter(c)) return symbol();
    return std::nullopt;
  }

  Value bracketed(std::string_view open, std::string_view close) {
    if (!take(open)) return std::nullopt;
    Value value = sum();
    return take(close) ? value : std::nullopt;
  }

  Value between_bars() {
    ++at_;
    ++bars_;
    const Value inside = sum();
    --bars_;
    return inside && take("|") ? absolute(*inside) : std::nullopt;
  }

  /// 0.1\overline{6}: the digits under the bar repeat.
  Value with_repeating(std::int64_t numerator, std::int64_t denominator) {
    for (const std::string_view bar : {"\\overline{", "\\bar{"}) {
      if (!text_.substr(at_).starts_with(bar)) continue;
      std::size_t end = at_ + bar.size();
      std::int64_t repeating = 0, nines = 1;
      for (; end < text_.size() && is_digit(text_[end]); ++end) {
        if (__builtin_mul_overflow(nines, 10, &nines)) return std::nullopt;
        repeating = repeating * 10 + (text_[end] - '0');
      }
      if (--nines == 0 || end >= text_.size() || text_[end] != '}') return std::nullopt;
      at_ = end + 1;
      if (__builtin_mul_overflow(numerator, nines, &numerator) ||
          __builtin_add_overflow(numerator, repeating, &numerator) ||
          __builtin_mul_overflow(denominator, nines, &denominator))
        return std::nullopt;
    }
    const auto value = make_rational(numerator, denominator);
    return value ? make_quotient(*value) : std::nullopt;
  }

  Value number() {
    std::int64_t numerator = 0, denominator = 1;
    bool any = false, point = false;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && (is_digit(text_[at_]) || (text_[at_] == '.' && !point)); ++at_) {
      if (text_[at_] == '.') {
        point = true;
        continue;
      }
      any = true;
      if (__builtin_mul_overflow(numerator, 10, &numerator) ||
          __builtin_add_overflow(numerator, text_[at_] - '0', &numerator))
        return std::nullopt;
      if (point && __builtin_mul_overflow(denominator, 10, &denominator)) return std::nullopt;
    }
    if (!any) return std::nullopt;
    if (!point && at_ < text_.size() && text_[at_] == '_')
      return subscripted(
          std::string(text_.substr(begin, at_ - begin)));  // 1011_2: a number of another base
    if (point) return with_repeating(numerator, denominator);
    return make_quotient({numerator, 1});
  }

  Value subscripted(std::string name) {
    if (at_ < text_.size() && text_[at_] == '_') {
      ++at_;
      const Value below = argument();
      if (!below) return std::nullopt;
      name += "_" + serialize(*below);
    }
    return make_symbol(name);
  }

  Value symbol() {
    std::size_t end = at_;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (const std::string_view function = function_of(word); !function.empty()) {
      at_ += function.size();
      return function == "sqrt" ? square_root_of(argument()) : applied(std::string(function));
    }
    if (word == "pi") {
      at_ = end;
      return make_symbol("pi");
    }
    if (word.size() > 3) return std::nullopt;  // a word, not a product
    return subscripted(std::string(1, text_[at_++]));
  }

  Value square_root_of(const Value& inside) { return inside ? root(*inside, 2) : std::nullopt; }

  Value applied(std::string name) {
    if (at_ < text_.size() && text_[at_] == '_') {
      ++at_;
      const Value base = argument();
      if (!base) return std::nullopt;
      name += "_" + serialize(*base);
    }
    Value exponent = make_quotient({1, 1});
    if (take("^")) exponent = exponent_argument();
    const auto degree = exponent ? constant_of(*exponent) : std::nullopt;
    if (degree && degree->numerator == -1 && degree->denominator == 1 && has_inverse_name(name)) {
      name = "arc" + name;
      exponent = make_quotient({1, 1});
    }
    const Value inside = function_argument();
    if (!exponent || !inside) return std::nullopt;
    if (name == "exp") return raise(make_symbol("e"), *inside);
    return raise(make_symbol(name + "(" + serialize(*inside) + ")"), *exponent);
  }

  // In brackets, and what is behind them is not of it: \sin(x)^2. Without, all factors up to an
  // operator, a further function, or a bracket that is no coefficient's: \sin 2x, \cos x(1 + y).
  Value function_argument() {
    if (peek() == '(') return nested(&Reader::atom);
    if (peek() == '{') {  // braces do not show: \sin{x}^2 is \sin x^2
      const Value value = nested(&Reader::atom);
      const Value exponent = value && take("^") ? exponent_argument() : make_quotient({1, 1});
      return value && exponent ? raise(*value, *exponent) : std::nullopt;
    }
    if (take("-")) {
      const Value value = nested(&Reader::function_argument);
      return value ? negate(*value) : std::nullopt;
    }
    const std::size_t begin = at_;
    Value total = nested(&Reader::factor);
    bool coefficient = is_whole(begin, at_);
    while (total && starts_atom() && !starts_function() && (peek() != '(' || coefficient)) {
      const Value next = nested(&Reader::factor);
      coefficient = false;
      total = next ? multiply(*total, *next) : std::nullopt;
    }
    return total;
  }

  bool starts_function() {
    std::size_t begin = at_;
    if (begin < text_.size() && text_[begin] == '\\') ++begin;
    std::size_t end = begin;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string_view function = function_of(text_.substr(begin, end - begin));
    return !function.empty() && function != "sqrt";
  }

  Value command() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    const std::string name(text_.substr(at_ + 1, end - at_ - 1));
    if (name == "cdot" || name == "times" || name == "div") return std::nullopt;
    at_ = end;
    if (name == "frac") {
      const Value above = argument(), below = above ? argument() : std::nullopt;
      return below ? divide(*above, *below) : std::nullopt;
    }
    if (name == "sqrt") {
      std::int64_t degree = 2;
      if (take("[")) {
        const auto constant = [&]() -> std::optional<Rational> {
          const Value value = sum();
          return value ? constant_of(*value) : std::nullopt;
        }();
        if (!constant || constant->denominator != 1 || constant->numerator < 2 || !take("]"))
          return std::nullopt;
        degree = constant->numerator;
      }
      const Value inside = argument();
      return inside ? root(*inside, degree) : std::nullopt;
    }
    if (name == "binom") {
      const Value above = argument(), below = above ? argument() : std::nullopt;
      return below ? binomial(*above, *below) : std::nullopt;
    }
    if (function_of(name) == name && !name.empty()) return applied(name);
    if (name == "infty") return make_symbol("infty");
    constexpr std::string_view kGreek =
        " alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi "
        "rho sigma tau phi varphi chi psi omega "
        "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ";
    if (name.empty() || kGreek.find(" " + name + " ") == std::string_view::npos)
      return std::nullopt;
    return subscripted(name);
  }

  // {anything}, a digit, or an atom: what follows \frac and \sqrt.
  Value argument() {
    const char c = peek();
    if (c == '{') return nested(&Reader::braced);
    if (is_digit(c)) return make_quotient({text_[at_++] - '0', 1});
    return nested(&Reader::atom);
  }
  Value braced() { return bracketed("{", "}"); }

  // As argument(), but people who write 2^10 mean 1024.
  Value exponent_argument() {
    if (peek() == '{') return nested(&Reader::braced);
    const bool minus = take("-");
    Value value = nested(&Reader::atom);
    return value && minus ? negate(*value) : value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int bars_ = 0;  // "|" that are open
};

}  // namespace

std::optional<Quotient> read_expression(std::string_view text) {
  if (text.empty() || text.size() > kExpressionBytesMax) return std::nullopt;
  // "no" and "on" are words, "x" is a variable.
  if (text.size() > 1 && text != "pi" && std::all_of(text.begin(), text.end(), is_letter))
    return std::nullopt;
  return Reader(text).read();
}

}  // namespace rl
