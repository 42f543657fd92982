#include "rl/template/evaluator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "rl/template/builtins.h"
#include "rl/template/failure.h"
#include "rl/template/python_string.h"

namespace rl {

TemplateEvaluator::TemplateEvaluator(const nlohmann::ordered_json& variables,
                                     const TemplateLimits& limits)
    : budget_(limits), root_(std::make_shared<TemplateScope>()) {
  if (!variables.is_object()) fail_type("the variables of a template must be an object");
  for (const auto& [name, value] : variables.items())
    root_->set(name, TemplateValue::from_json(value));
}

TemplateEvaluator::~TemplateEvaluator() {
  for (const auto& box : namespaces_) box->attributes.clear();
  for (const auto& loop : kept_loops_) loop->changed_value.clear();
}

TemplateValue TemplateEvaluator::eval(const TemplateExpr& expr, const ScopePtr& scope) {
  const TemplateDepthGuard guard = budget_.nest();
  charge_steps(1);
  line_ = expr.line;
  switch (expr.kind) {
    case ExprKind::kConstant: return expr.value;
    case ExprKind::kName: return eval_name(expr, scope);
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kDict: return eval_collection(expr, scope);
    case ExprKind::kNot: return !eval(*expr.parts[0], scope).truthy();
    case ExprKind::kAnd: {
      TemplateValue left = eval(*expr.parts[0], scope);
      return left.truthy() ? eval(*expr.parts[1], scope) : left;
    }
    case ExprKind::kOr: {
      TemplateValue left = eval(*expr.parts[0], scope);
      return left.truthy() ? left : eval(*expr.parts[1], scope);
    }
    case ExprKind::kNegative:
    case ExprKind::kPositive:
    case ExprKind::kArithmetic:
    case ExprKind::kConcat: return eval_operator(expr, scope);
    case ExprKind::kCompare: return eval_compare(expr, scope);
    case ExprKind::kConditional:
      if (eval(*expr.parts[1], scope).truthy()) return eval(*expr.parts[0], scope);
      if (expr.parts[2] != nullptr) return eval(*expr.parts[2], scope);
      return TemplateValue::undefined("the inline if-expression on line " +
                                      std::to_string(expr.line) +
                                      " evaluated to false and no else section was defined.");
    case ExprKind::kAttribute: return get_attribute(*this, eval(*expr.parts[0], scope), expr.text);
    case ExprKind::kSubscript: {
      const TemplateValue object = eval(*expr.parts[0], scope);
      return get_item(*this, object, eval(*expr.parts[1], scope));
    }
    case ExprKind::kSlice: return eval_slice(expr, scope);
    case ExprKind::kCall: {
      const TemplateValue callee = eval(*expr.parts[0], scope);
      const CallArguments arguments = eval_arguments(expr.arguments, scope);
      line_ = expr.line;
      return call(callee, arguments);
    }
    case ExprKind::kFilter: return eval_filter(expr, nullptr, scope);
    case ExprKind::kTest: {
      const TemplateValue input = eval(*expr.parts[0], scope);
      const CallArguments arguments = eval_arguments(expr.arguments, scope);
      line_ = expr.line;
      return test(expr.text, input, arguments);
    }
  }
  return {};
}

TemplateValue TemplateEvaluator::eval_name(const TemplateExpr& expr, const ScopePtr& scope) {
  for (TemplateScope* at = scope.get(); at != nullptr; at = at->parent.get()) {
    if (const TemplateValue* value = at->find(expr.text)) return *value;
  }
  return find_global(*this, expr.text);
}

TemplateValue TemplateEvaluator::eval_collection(const TemplateExpr& expr, const ScopePtr& scope) {
  charge(64 + expr.parts.size() * sizeof(TemplateValue));
  if (expr.kind == ExprKind::kDict) {
    DictBox members;
    for (std::size_t i = 0; i + 1 < expr.parts.size(); i += 2) {
      TemplateValue key = eval(*expr.parts[i], scope);
      if (key.is_list() || key.is_dict()) fail_type("unhashable type: '" + key.type_name() + "'");
      members.set(budget_, std::move(key), eval(*expr.parts[i + 1], scope));
    }
    return TemplateValue::dict(std::move(members));
  }
  ValueList items;
  items.reserve(expr.parts.size());
  for (const ExprPtr& part : expr.parts) items.push_back(eval(*part, scope));
  return expr.kind == ExprKind::kList ? TemplateValue::list(std::move(items))
                                      : TemplateValue::tuple(std::move(items));
}

TemplateValue TemplateEvaluator::eval_operator(const TemplateExpr& expr, const ScopePtr& scope) {
  if (expr.kind == ExprKind::kArithmetic) {
    const TemplateValue left = eval(*expr.parts[0], scope);
    const TemplateValue right = eval(*expr.parts[1], scope);
    line_ = expr.line;
    return arithmetic(*this, expr.text, left, right);
  }
  if (expr.kind == ExprKind::kConcat) {
    std::string text;
    for (const ExprPtr& part : expr.parts) {
      const std::string piece = eval(*part, scope).to_string(budget_);
      charge(piece.size());
      text += piece;
    }
    return text;
  }
  const TemplateValue value = eval(*expr.parts[0], scope);
  require_defined(value);
  const bool negative = expr.kind == ExprKind::kNegative;
  if (value.is_big_integer()) {
    const std::string& digits = value.as_big_integer();
    return !negative
               ? value
               : TemplateValue::integer(digits.starts_with('-') ? digits.substr(1) : "-" + digits);
  }
  if (!value.is_number())
    fail_type(std::string("bad operand type for unary ") + (negative ? "-" : "+") + ": '" +
              value.type_name() + "'");
  if (value.is_float()) return negative ? -value.as_double() : value.as_double();
  if (negative && value.as_int() == INT64_MIN) return TemplateValue::integer("9223372036854775808");
  return negative ? -value.as_int() : value.as_int();
}

TemplateValue TemplateEvaluator::eval_compare(const TemplateExpr& expr, const ScopePtr& scope) {
  TemplateValue left = eval(*expr.parts[0], scope);
  for (std::size_t i = 0; i < expr.names.size(); ++i) {
    TemplateValue right = eval(*expr.parts[i + 1], scope);
    const std::string& op = expr.names[i];
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = equal_values(budget_, left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(*this, right, left) == (op == "in");
    } else {
      const bool nan = (left.is_float() && left.as_double() != left.as_double()) ||
                       (right.is_float() && right.as_double() != right.as_double());
      const int order = compare_values(budget_, left, right, op.c_str());
      holds = !nan && (op == "<"    ? order < 0
                       : op == "<=" ? order <= 0
                       : op == ">"  ? order > 0
                                    : order >= 0);
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

TemplateValue TemplateEvaluator::eval_slice(const TemplateExpr& expr, const ScopePtr& scope) {
  const TemplateValue object = eval(*expr.parts[0], scope);
  require_defined(object);
  std::optional<std::int64_t> bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expr.parts[i + 1] == nullptr) continue;
    const TemplateValue bound = eval(*expr.parts[i + 1], scope);
    if (bound.is_none()) continue;
    require_defined(bound);
    if (!bound.is_int() && !bound.is_bool())
      fail_type("slice indices must be integers or None or have an __index__ method");
    bounds[i] = bound.as_int();
  }
  const std::int64_t step = bounds[2].value_or(1);
  if (step == 0) fail_python("ValueError", "slice step cannot be zero");
  if (!object.is_string() && !object.is_sequence()) {
    fail_type(object.is_dict() ? "unhashable type: 'slice'"
                               : "'" + object.type_name() + "' object is not subscriptable");
  }
  const bool is_string = object.is_string();
  const std::int64_t size = length_of(*this, object);
  const auto clamp = [size, step](std::int64_t at) {
    if (at < 0) at = at < -size ? -1 : at + size;
    const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    return std::clamp(at, low, std::max(low, high));
  };
  const std::int64_t start = bounds[0] ? clamp(*bounds[0]) : (step < 0 ? size - 1 : 0);
  const std::int64_t stop = bounds[1] ? clamp(*bounds[1]) : (step < 0 ? -1 : size);
  // A step beyond the size takes one item; it must not overflow the counter.
  const std::int64_t stride = std::clamp(step, -size - 1, size + 1);
  const auto each = [&](const auto& take) {
    for (std::int64_t i = start; stride > 0 ? i < stop : i > stop; i += stride)
      take(static_cast<std::size_t>(i));
  };
  if (is_string) {
    charge(object.as_string().size());
    charge_characters(object.as_string().size());
    const std::vector<std::string_view> characters = split_characters(object.as_string());
    std::string text;
    each([&](std::size_t i) { text += characters[i]; });
    return text;
  }
  charge(static_cast<std::size_t>(size) * sizeof(TemplateValue));
  ValueList items;
  each([&](std::size_t i) { items.push_back(object.items()[i]); });
  if (object.is_range()) {
    const RangeBounds& whole = *object.as_tuple().range;
    return TemplateValue::range(
        std::move(items),
        {whole.start + start * whole.step, whole.start + stop * whole.step, whole.step * stride});
  }
  return object.is_list() ? TemplateValue::list(std::move(items))
                          : TemplateValue::tuple(std::move(items));
}

TemplateValue TemplateEvaluator::eval_filter(const TemplateExpr& expr,
                                             const TemplateValue* block_text,
                                             const ScopePtr& scope) {
  const TemplateDepthGuard guard = budget_.nest();
  TemplateValue input;
  if (expr.parts[0] == nullptr) {
    input = *block_text;
  } else if (expr.parts[0]->kind == ExprKind::kFilter) {
    input = eval_filter(*expr.parts[0], block_text, scope);
  } else {
    input = eval(*expr.parts[0], scope);
  }
  const CallArguments arguments = eval_arguments(expr.arguments, scope);
  charge_steps(1);
  line_ = expr.line;
  return filter(expr.text, input, arguments);
}

CallArguments TemplateEvaluator::eval_arguments(const std::vector<Argument>& arguments,
                                                const ScopePtr& scope) {
  CallArguments result;
  for (const Argument& argument : arguments) {
    TemplateValue value = eval(*argument.value, scope);
    switch (argument.form) {
      case Argument::Form::kPositional: result.positional.push_back(std::move(value)); break;
      case Argument::Form::kKeyword:
        result.named.emplace_back(argument.name, std::move(value));
        break;
      case Argument::Form::kStar:
        for (TemplateValue& item : iterate(value)) result.positional.push_back(std::move(item));
        break;
      case Argument::Form::kDoubleStar:
        if (!value.is_dict())
          fail_type("argument after ** must be a mapping, not " + value.type_name());
        charge(value.as_dict().entries().size() * 64);
        for (const auto& [key, item] : value.as_dict().entries())
          result.named.emplace_back(key.to_string(budget_), item);
        break;
    }
  }
  return result;
}

TemplateValue TemplateEvaluator::call(const TemplateValue& callee, const CallArguments& arguments) {
  require_defined(callee);
  if (!callee.is_callable()) {
    if (callee.is_loop()) fail_unsupported(line_, "a recursive loop");
    fail_type("'" + callee.type_name() + "' object is not callable");
  }
  return callee.as_callable().call(arguments);
}

TemplateValue TemplateEvaluator::filter(std::string_view name, const TemplateValue& input,
                                        const CallArguments& arguments) {
  const FilterFunction function = find_filter(name);
  if (function == nullptr) fail_unsupported(line_, "the filter '" + std::string(name) + "'");
  return function(*this, input, arguments);
}

bool TemplateEvaluator::test(std::string_view name, const TemplateValue& input,
                             const CallArguments& arguments) {
  const TestFunction function = find_test(name);
  if (function == nullptr) fail_unsupported(line_, "the test '" + std::string(name) + "'");
  return function(*this, input, arguments);
}

TemplateValue TemplateEvaluator::make_namespace(const CallArguments& arguments) {
  auto box = std::make_shared<NamespaceBox>();
  if (arguments.positional.size() > 1) fail_type("namespace() takes at most one dictionary");
  if (!arguments.positional.empty()) {
    if (!arguments.positional[0].is_dict())
      fail_type("'" + arguments.positional[0].type_name() + "' object is not iterable");
    for (const auto& [key, value] : arguments.positional[0].as_dict().entries())
      box->attributes.emplace_back(key.to_string(budget_), value);
  }
  for (const auto& [name, value] : arguments.named) box->attributes.emplace_back(name, value);
  namespaces_.push_back(box);
  charge(sizeof(NamespaceBox) + 64 + box->attributes.size() * 64);
  return TemplateValue(std::move(box));
}

ValueList TemplateEvaluator::iterate(const TemplateValue& value) {
  ValueList items;
  if (value.is_undefined()) {
    if (std::string_view(value.as_undefined().exception) != "UndefinedError")
      require_defined(value);
    return items;
  }
  const std::int64_t count =
      value.is_string() || value.is_sequence() || value.is_dict() ? length_of(*this, value) : 0;
  charge(static_cast<std::size_t>(count) * (sizeof(TemplateValue) + (value.is_string() ? 64 : 0)));
  charge_steps(count);
  if (value.is_sequence()) {
    items = value.items();
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict().entries()) items.push_back(key);
  } else if (value.is_string()) {
    for (std::string_view character : split_characters(value.as_string()))
      items.push_back(TemplateValue::text(character));
  } else {
    fail_type("'" + value.type_name() + "' object is not iterable");
  }
  return items;
}

}  // namespace rl
