// The grammar of formulas, LaTeX or plain, for whatever their values are. Private to rl/reward.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rl/reward/characters.h"
#include "rl/reward/polynomial.h"
#include "rl/reward/written_number.h"

namespace rl {

inline constexpr std::size_t kExpressionBytesMax = 1000;
inline constexpr int kExpressionDepthMax = 40;

inline constexpr std::string_view kFunctionNames[] = {
    "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "sinh",
    "cosh",   "tanh",   "sqrt",   "sin",    "cos",    "tan",    "cot",
    "sec",    "csc",    "cis",    "log",    "ln",     "lg",     "exp"};

/// The function that a word names, or begins with before one letter ("sinx"); empty: none.
inline std::string_view function_of(std::string_view word) {
  for (const std::string_view name : kFunctionNames) {
    if (word == name || (word.starts_with(name) && word.size() == name.size() + 1)) return name;
  }
  return {};
}

inline bool has_inverse_name(std::string_view function) {
  return function == "sin" || function == "cos" || function == "tan" || function == "cot" ||
         function == "sec" || function == "csc";
}

/// Whether degrees count in its argument.
inline bool takes_angle(std::string_view function) {
  return has_inverse_name(function) || function == "cis" || function == "exp";
}

/// "no" and "on" are words, "x" is a variable.
inline bool may_be_expression(std::string_view text) {
  if (text.empty() || text.size() > kExpressionBytesMax) return false;
  return text.size() == 1 || text == "pi" || !std::all_of(text.begin(), text.end(), is_letter);
}

/// Recursive descent: one function for each rule of the grammar, hence their number. `Algebra` says
/// what values are: exact ones, or numbers.
template <class Algebra>
class ExpressionReader {
  using Value = std::optional<typename Algebra::Value>;

 public:
  ExpressionReader(std::string_view text, Algebra& algebra) : text_(text), algebra_(algebra) {}

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
      if (next && minus) next = algebra_.negate(*next);
      total = next ? algebra_.add(*total, *next) : std::nullopt;
    }
    --depth_;
    return total;
  }

  Value product() {
    if (take("-")) {
      const Value value = nested(&ExpressionReader::product);
      return value ? algebra_.negate(*value) : std::nullopt;
    }
    if (take("+")) return nested(&ExpressionReader::product);
    Value total = factor();
    while (total) {
      if (take("\\cdot") || take("\\times") || take("*") || take("×") || take("·")) {
        const Value next = signed_factor();
        total = next ? algebra_.multiply(*total, *next) : std::nullopt;
      } else if (take("\\div") || take("/") || take("÷")) {
        const Value next = signed_factor();
        total = next ? algebra_.divide(*total, *next) : std::nullopt;
      } else if (starts_atom()) {
        const Value next = factor();
        total = next ? algebra_.multiply(*total, *next) : std::nullopt;
      } else {
        break;
      }
    }
    return total;
  }

  Value nested(Value (ExpressionReader::*rule)()) {
    if (depth_ > kExpressionDepthMax) return std::nullopt;
    ++depth_;
    Value value = (this->*rule)();
    --depth_;
    return value;
  }

  Value signed_factor() {
    if (!take("-")) return factor();
    const Value value = factor();
    return value ? algebra_.negate(*value) : std::nullopt;
  }

  // Two numbers side by side are no product.
  bool starts_atom() {
    const char c = peek();
    if (is_digit(c) || c == '.') return at_ > 0 && starts_number_of_product();
    if (text_.substr(at_).starts_with("\\rfloor") || text_.substr(at_).starts_with("\\rceil"))
      return false;
    return c == '(' || c == '{' || c == '\\' || is_letter(c) || (c == '|' && bars_ == 0);
  }

  // Behind a blank in arguments alone: "e^{i 60}" is a product, "room 5" none.
  bool starts_number_of_product() const {
    std::size_t last = at_ - 1;
    if (angles_ > 0 && text_[last] == ' ') {
      last = text_.find_last_not_of(' ', last);
      if (last == text_.npos || !is_letter(text_[last])) return false;
    }
    return !is_digit(text_[last]) && text_[last] != ' ' && text_[last] != '.';
  }

  Value factor() {
    skip();
    const std::size_t begin = at_;
    Value value = nested(&ExpressionReader::atom);
    if (value && is_whole(begin, at_) && peek() == '\\' &&
        (text_.substr(at_).starts_with("\\frac")))
      value = mixed(*value);
    while (value) {
      if (take("^") || take("**")) {
        ++angles_;  // e^{i60\degree}
        const Value exponent = exponent_argument();
        --angles_;
        value = exponent ? algebra_.raise(*value, *exponent) : std::nullopt;
      } else if (take("!")) {
        value = factorial(*value);
      } else if (take("\\degree")) {
        value = angle(*value);
      } else {
        break;
      }
    }
    return value;
  }

  // 30 degrees are \pi/6 where a function is taken of them; elsewhere the sign says nothing.
  Value angle(const typename Algebra::Value& degrees) {
    if (angles_ == 0) return degrees;
    const Value pi = algebra_.symbol("pi"), half_turn = algebra_.rational(180, 1);
    const Value turned = pi ? algebra_.multiply(degrees, *pi) : std::nullopt;
    return turned && half_turn ? algebra_.divide(*turned, *half_turn) : std::nullopt;
  }

  bool is_whole(std::size_t begin, std::size_t end) const {
    return begin < end && std::all_of(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                      text_.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
  }

  // "1\frac{1}{2}" is one and a half.
  Value mixed(const typename Algebra::Value& whole) {
    const std::size_t begin = at_;
    const Value part = atom();
    const auto constant = part ? algebra_.constant_of(*part) : std::nullopt;
    if (constant && constant->numerator > 0 && constant->numerator < constant->denominator)
      return algebra_.add(whole, *part);
    at_ = begin;
    return whole;
  }

  Value factorial(const typename Algebra::Value& value) {
    const auto constant = algebra_.constant_of(value);
    if (!constant || constant->denominator != 1 || constant->numerator < 0 ||
        constant->numerator > 20)
      return std::nullopt;
    std::int64_t product = 1;
    for (std::int64_t i = 2; i <= constant->numerator; ++i) product *= i;
    return algebra_.rational(product, 1);
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
    return inside && take("|") ? algebra_.absolute(*inside) : std::nullopt;
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
    return algebra_.rational(numerator, denominator);
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
    const Value value =
        point ? with_repeating(numerator, denominator) : algebra_.rational(numerator, 1);
    const std::size_t behind = end_of_power_of_ten();
    if (!value || behind == at_) return value;
    const auto power = WrittenNumber::parse("1" + std::string(text_.substr(at_, behind - at_)));
    at_ = behind;
    const Value ten = algebra_.rational(10, 1),
                exponent = power ? algebra_.rational(power->exponent(), 1) : std::nullopt;
    const Value factor = ten && exponent ? algebra_.raise(*ten, *exponent) : std::nullopt;
    return factor ? algebra_.multiply(*value, *factor) : std::nullopt;
  }

  // Behind a number: "e3", "E-05". In "2e-5" Euler's number may be meant.
  std::size_t end_of_power_of_ten() const {
    std::size_t at = at_ + 1;
    if (at >= text_.size() || (text_[at_] != 'e' && text_[at_] != 'E')) return at_;
    if (text_.substr(at).starts_with("-0") || text_.substr(at).starts_with("+0")) ++at;
    const std::size_t digits = at;
    while (at < text_.size() && is_digit(text_[at])) ++at;
    const bool goes_on = at < text_.size() && is_letter(text_[at]);  // 4e2x: a product
    return at == digits || goes_on ? at_ : at;
  }

  Value subscripted(std::string name) {
    if (at_ < text_.size() && text_[at_] == '_') {
      ++at_;
      const Value below = argument();
      if (!below) return std::nullopt;
      name += "_" + algebra_.text_of(*below);
    }
    return algebra_.symbol(name);
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
      return algebra_.symbol("pi");
    }
    if (word.size() > 3) return std::nullopt;  // a word, not a product
    const bool is_called = word.size() == 1 && (word == "f" || word == "g") && calls(end);
    return is_called ? called() : subscripted(std::string(1, text_[at_++]));
  }

  /// Whether arguments in brackets begin at `at`, perhaps behind the sign of an inverse.
  bool calls(std::size_t at) const {
    for (const std::string_view inverse : {"^{-1}", "^-1"}) {
      if (text_.substr(at).starts_with(inverse)) at += inverse.size();
    }
    return text_.substr(at).starts_with("(");
  }

  /// f(x) and f^{-1}(x): one value, which is no product of f.
  Value called() {
    const std::size_t open = text_.find('(', at_);
    std::string name(text_.substr(at_, open - at_));
    at_ = open;
    do {
      ++at_;
      const Value inside = nested(&ExpressionReader::sum);
      if (!inside) return std::nullopt;
      name += "(" + algebra_.text_of(*inside);
    } while (peek() == ',');
    return take(")") ? algebra_.symbol(name) : std::nullopt;
  }

  Value square_root_of(const Value& inside) {
    return inside ? algebra_.root(*inside, 2) : std::nullopt;
  }

  Value applied(std::string name) {
    Value base;
    if (at_ < text_.size() && text_[at_] == '_') {
      ++at_;
      base = argument();
      if (!base) return std::nullopt;
    }
    Value exponent = algebra_.rational(1, 1);
    if (take("^")) exponent = exponent_argument();
    const auto degree = exponent ? algebra_.constant_of(*exponent) : std::nullopt;
    if (degree && degree->numerator == -1 && degree->denominator == 1 && has_inverse_name(name)) {
      name = "arc" + name;
      exponent = algebra_.rational(1, 1);
    }
    const int of_angles = takes_angle(name) ? 1 : 0;
    angles_ += of_angles;
    const Value inside = function_argument();
    angles_ -= of_angles;
    if (!exponent || !inside) return std::nullopt;
    const Value value = algebra_.function(name, base, *inside);
    return value ? algebra_.raise(*value, *exponent) : std::nullopt;
  }

  // In brackets, and what is behind them is not of it: \sin(x)^2. Without, all factors up to an
  // operator, a further function, or a bracket that is no coefficient's: \sin 2x, \cos x(1 + y).
  Value function_argument() {
    if (peek() == '(') {
      const Value value = nested(&ExpressionReader::atom);
      return value && take("\\degree") ? angle(*value) : value;
    }
    if (peek() == '{') {  // braces do not show: \sin{x}^2 is \sin x^2
      const Value value = nested(&ExpressionReader::atom);
      const Value exponent = value && take("^") ? exponent_argument() : algebra_.rational(1, 1);
      return value && exponent ? algebra_.raise(*value, *exponent) : std::nullopt;
    }
    if (take("-")) {
      const Value value = nested(&ExpressionReader::function_argument);
      return value ? algebra_.negate(*value) : std::nullopt;
    }
    const std::size_t begin = at_;
    Value total = nested(&ExpressionReader::factor);
    bool coefficient = is_whole(begin, at_);
    while (total && starts_atom() && !starts_function() && (peek() != '(' || coefficient)) {
      const Value next = nested(&ExpressionReader::factor);
      coefficient = false;
      total = next ? algebra_.multiply(*total, *next) : std::nullopt;
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
      return below ? algebra_.divide(*above, *below) : std::nullopt;
    }
    if (name == "sqrt") {
      std::int64_t degree = 2;
      if (take("[")) {
        const auto constant = [&]() -> std::optional<Rational> {
          const Value value = sum();
          return value ? algebra_.constant_of(*value) : std::nullopt;
        }();
        if (!constant || constant->denominator != 1 || constant->numerator < 2 || !take("]"))
          return std::nullopt;
        degree = constant->numerator;
      }
      const Value inside = argument();
      return inside ? algebra_.root(*inside, degree) : std::nullopt;
    }
    if (name == "binom") {
      const Value above = argument(), below = above ? argument() : std::nullopt;
      return below ? algebra_.binomial(*above, *below) : std::nullopt;
    }
    if (name == "lfloor") return rounded("\\rfloor", false);
    if (name == "lceil") return rounded("\\rceil", true);
    if (function_of(name) == name && !name.empty()) return applied(name);
    if (name == "infty") return algebra_.symbol("infty");
    if (name == "hat" || name == "vec" || name == "overrightarrow") return marked(name);
    constexpr std::string_view kGreek =
        " alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi "
        "rho sigma tau phi varphi chi psi omega "
        "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ";
    if (name.empty() || kGreek.find(" " + name + " ") == std::string_view::npos)
      return std::nullopt;
    return subscripted(name);
  }

  /// \hat{i}: its own symbol.
  Value marked(const std::string& mark) {
    skip();
    if (at_ >= text_.size()) return std::nullopt;
    const bool is_braced = text_[at_] == '{';
    const std::size_t end = is_braced ? text_.find('}', at_) : at_;
    if (end == text_.npos || (!is_braced && !is_letter(text_[at_]))) return std::nullopt;
    const std::string_view inside =
        is_braced ? text_.substr(at_ + 1, end - at_ - 1) : text_.substr(at_, 1);
    at_ = end + 1;
    return subscripted(mark + "(" + std::string(inside) + ")");
  }

  Value rounded(std::string_view close, bool up) {
    const Value value = nested(&ExpressionReader::sum);
    return value && take(close) ? algebra_.rounded(*value, up) : std::nullopt;
  }

  // {anything}, a digit, or an atom: what follows \frac and \sqrt.
  Value argument() {
    const char c = peek();
    if (c == '{') return nested(&ExpressionReader::braced);
    if (is_digit(c)) return algebra_.rational(text_[at_++] - '0', 1);
    return nested(&ExpressionReader::atom);
  }
  Value braced() { return bracketed("{", "}"); }

  // As argument(), but people who write 2^10 mean 1024.
  Value exponent_argument() {
    if (peek() == '{') return nested(&ExpressionReader::braced);
    const bool minus = take("-");
    Value value = nested(&ExpressionReader::atom);
    return value && minus ? algebra_.negate(*value) : value;
  }

  std::string_view text_;
  Algebra& algebra_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int bars_ = 0;    // "|" that are open
  int angles_ = 0;  // arguments and exponents that are open, in which degrees count
};

}  // namespace rl
