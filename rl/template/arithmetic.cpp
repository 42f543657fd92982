// Operators of the template language, as Python defines them.
#include <cmath>
#include <limits>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {
namespace {

[[noreturn]] void fail_overflow() { fail_python("OverflowError", "integer beyond 64 bits"); }

[[noreturn]] void fail_operands(std::string_view op, const TemplateValue& a,
                                const TemplateValue& b) {
  const std::string name = op == "**" ? "** or pow()" : std::string(op);
  fail_type("unsupported operand type(s) for " + name + ": '" + a.type_name() + "' and '" +
            b.type_name() + "'");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_python("ZeroDivisionError", "integer division or modulo by zero");
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) fail_overflow();
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow();
    if (result == 0 || (result == 1 && base == 1)) return result;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  }
  return result;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) fail_python("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    fail_python("ValueError", "complex numbers are not supported");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
    fail_python("OverflowError", "(34, 'Numerical result out of range')");
  return power;
}

TemplateValue integer_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &result)) fail_overflow();
    return result;
  }
  if (op == "-") {
    if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
    return result;
  }
  if (op == "*") {
    if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
    return result;
  }
  if (op == "/") {
    if (b == 0) fail_python("ZeroDivisionError", "division by zero");
    return static_cast<double>(a) / static_cast<double>(b);
  }
  if (op == "//") return floor_divide(a, b);
  if (op == "%") {
    if (b == 0) fail_python("ZeroDivisionError", "integer modulo by zero");
    if (b == -1) return std::int64_t{0};
    return a - floor_divide(a, b) * b;
  }
  if (b < 0) return float_power(static_cast<double>(a), static_cast<double>(b));
  return integer_power(a, b);
}

TemplateValue float_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return float_power(a, b);
  if (b == 0)
    fail_python("ZeroDivisionError", op == "/"    ? "float division by zero"
                                     : op == "//" ? "float floor division by zero"
                                                  : "float modulo");
  if (op == "/") return a / b;
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;  // of whole numbers: a / b may be rounded up to the next one
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == "%") return rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

/// "ab" * 3 and [1] * 3.
TemplateValue repeat(TemplateEvaluator& evaluator, const TemplateValue& value, std::int64_t times) {
  const std::size_t size =
      value.is_string() ? value.as_string().size() : value.items().size() * sizeof(TemplateValue);
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(size, count, &bytes))
    bytes = std::numeric_limits<std::size_t>::max() / 4;
  evaluator.charge(bytes);
  if (value.is_string()) {
    std::string text;
    if (size == 0) return text;
    for (std::size_t i = 0; i < count; ++i) text += value.as_string();
    return text;
  }
  ValueList items;
  if (size > 0) {
    for (std::size_t i = 0; i < count; ++i)
      items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return value.is_list() ? TemplateValue::list(std::move(items))
                         : TemplateValue::tuple(std::move(items));
}

TemplateValue add_sequences(TemplateEvaluator& evaluator, const TemplateValue& a,
                            const TemplateValue& b) {
  evaluator.charge((a.items().size() + b.items().size()) * sizeof(TemplateValue));
  ValueList items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is_list() ? TemplateValue::list(std::move(items))
                     : TemplateValue::tuple(std::move(items));
}

}  // namespace

TemplateValue arithmetic(TemplateEvaluator& evaluator, std::string_view op, const TemplateValue& a,
                         const TemplateValue& b) {
  if (op == "%" && a.is_string()) {
    // Of one value that has items Python does not ask whether it was used: it may have been for
    // names.
    const bool has_items = b.is_list() || b.is_dict() || b.is_range() || b.is_undefined();
    return format_percent(evaluator, a.as_string(),
                          b.is_tuple() && !b.is_range() ? b.items() : ValueList{b}, !has_items);
  }
  require_defined(a);
  require_defined(b);
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return float_arithmetic(op, a.as_double(), b.as_double());
    return integer_arithmetic(op, a.as_int(), b.as_int());
  }
  const auto is_numeric = [](const TemplateValue& value) {
    return value.is_number() || value.is_big_integer();
  };
  if (is_numeric(a) && is_numeric(b)) fail_overflow();
  if (op == "+") {
    if (a.is_string() && b.is_string()) {
      evaluator.charge(a.as_string().size() + b.as_string().size());
      return a.as_string() + b.as_string();
    }
    if ((a.is_list() && b.is_list()) ||
        (a.is_tuple() && b.is_tuple() && !a.is_range() && !b.is_range()))
      return add_sequences(evaluator, a, b);
    if (a.is_string() || a.is_sequence())
      fail_type("can only concatenate " + a.type_name() + " (not \"" + b.type_name() + "\") to " +
                a.type_name());
  }
  if (op == "*") {
    const auto is_whole = [](const TemplateValue& value) {
      return value.is_int() || value.is_bool();
    };
    if (a.is_range() || b.is_range()) fail_operands(op, a, b);
    if ((a.is_string() || a.is_sequence()) && is_whole(b)) return repeat(evaluator, a, b.as_int());
    if ((b.is_string() || b.is_sequence()) && is_whole(a)) return repeat(evaluator, b, a.as_int());
  }
  fail_operands(op, a, b);
}

bool contains(TemplateEvaluator& evaluator, const TemplateValue& container,
              const TemplateValue& item) {
  if (container.is_string()) {
    require_defined(item);
    if (!item.is_string())
      fail_type("'in <string>' requires string as left operand, not " + item.type_name());
    evaluator.charge_scan(container.as_string().size() + item.as_string().size());
    return find_text(container.as_string(), item.as_string()) != std::string_view::npos;
  }
  if (container.is_dict())
    return container.as_dict().find_value(evaluator.budget(), item) != nullptr;
  if (container.is_none() || container.is_number() || container.is_callable()) {
    fail_type("argument of type '" + container.type_name() + "' is not iterable");
  }
  for (const TemplateValue& present : evaluator.iterate(container)) {
    if (equal_values(evaluator.budget(), present, item)) return true;
  }
  return false;
}

std::int64_t length_of(TemplateEvaluator& evaluator, const TemplateValue& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) {
    evaluator.charge_scan(value.as_string().size());
    return count_characters(value.as_string());
  }
  if (value.is_sequence()) return static_cast<std::int64_t>(value.items().size());
  if (value.is_dict()) return static_cast<std::int64_t>(value.as_dict().entries().size());
  if (value.is_loop()) return static_cast<std::int64_t>(value.as_loop().items.size());
  fail_type("object of type '" + value.type_name() + "' has no len()");
}

}  // namespace rl
