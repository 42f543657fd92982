#include "rl/text/template_evaluator.h"

#include <algorithm>

#include "rl/text/template_builtins.h"
#include "rl/text/template_failure.h"
#include "rl/text/template_string.h"

namespace rl {
namespace {

constexpr int kFramesMax = 1500;  // nested evaluations; a frame is about a kilobyte of stack

}  // namespace

/// Counts nested evaluations, also when one throws.
class TemplateEvaluator::DepthGuard {
 public:
  DepthGuard(int& depth, int most) : depth_(depth) {
    if (depth_ >= most) fail_python("RecursionError", "maximum recursion depth exceeded");
    ++depth_;
  }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

TemplateValue* TemplateScope::find(std::string_view name) {
  for (auto& [present, value] : variables) {
    if (present == name) return &value;
  }
  return nullptr;
}

void TemplateScope::set(std::string_view name, TemplateValue value) {
  if (TemplateValue* present = find(name)) {
    *present = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

TemplateEvaluator::TemplateEvaluator(const nlohmann::ordered_json& variables, const TemplateLimits& limits)
    : limits_(limits), root_(std::make_shared<TemplateScope>()) {
  if (!variables.is_object()) fail_type("the variables of a template must be an object");
  for (const auto& [name, value] : variables.items()) root_->set(name, TemplateValue::from_json(value));
}

TemplateEvaluator::~TemplateEvaluator() {
  for (const auto& box : namespaces_) box->attributes.clear();
  for (const ScopePtr& scope : macro_scopes_) scope->variables.clear();
}

std::string TemplateEvaluator::run(const Block& block) { return capture(block, root_); }

void TemplateEvaluator::charge(std::size_t bytes) {
  work_bytes_ += bytes;
  if (work_bytes_ > limits_.work_bytes_max) fail_limit("rendering needs more than " + std::to_string(limits_.work_bytes_max) + " bytes of memory");
}

void TemplateEvaluator::charge_steps(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps_max) fail_limit("rendering takes more than " + std::to_string(limits_.steps_max) + " steps");
}

void TemplateEvaluator::emit(std::string_view text) {
  if (out_->size() + text.size() > limits_.output_bytes_max) fail_limit("rendering gives more than " + std::to_string(limits_.output_bytes_max) + " bytes");
  charge(text.size());
  *out_ += text;
}

std::string TemplateEvaluator::capture(const Block& block, const ScopePtr& scope) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  struct Restore {
    std::string*& out;
    std::string* outer;
    ~Restore() { out = outer; }
  } restore{out_, outer};
  exec(block, scope);
  return text;
}

// ---- statements

TemplateEvaluator::Flow TemplateEvaluator::exec(const Block& block, const ScopePtr& scope) {
  const DepthGuard guard(frames_, kFramesMax);
  for (const TemplateStatement& statement : block) {
    charge_steps(1);
    line_ = statement.line;
    const Flow flow = exec_one(statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

TemplateEvaluator::Flow TemplateEvaluator::exec_one(const TemplateStatement& statement, const ScopePtr& scope) {
  const auto inner_scope = [&scope] { return std::make_shared<TemplateScope>(TemplateScope{scope, {}}); };
  switch (statement.kind) {
    case StatementKind::kText:
      emit(statement.text);
      break;
    case StatementKind::kOutput:
      emit(eval(*statement.expr, scope).to_string());
      break;
    case StatementKind::kIf:
      return exec_if(statement, scope);
    case StatementKind::kFor:
      exec_for(statement, scope);
      break;
    case StatementKind::kSet:
      assign(statement.target, eval(*statement.expr, scope), scope);
      break;
    case StatementKind::kSetBlock: {
      TemplateValue text(capture(statement.body, inner_scope()));
      if (statement.expr != nullptr) text = eval_filter(*statement.expr, &text, scope);
      assign(statement.target, std::move(text), scope);
      break;
    }
    case StatementKind::kMacro:
      scope->set(statement.text, make_macro(statement, statement.text, scope));
      break;
    case StatementKind::kCallBlock:
      exec_call_block(statement, scope);
      break;
    case StatementKind::kFilterBlock: {
      const TemplateValue text(capture(statement.body, inner_scope()));
      emit(eval_filter(*statement.expr, &text, scope).to_string());
      break;
    }
    case StatementKind::kWith:
      exec_with(statement, scope);
      break;
    case StatementKind::kScope:
      return exec(statement.body, inner_scope());
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

TemplateEvaluator::Flow TemplateEvaluator::exec_if(const TemplateStatement& statement, const ScopePtr& scope) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || eval(*branch.condition, scope).truthy()) return exec(branch.body, scope);
  }
  return Flow::kNormal;
}

void TemplateEvaluator::exec_for(const TemplateStatement& statement, const ScopePtr& scope) {
  auto state = std::make_shared<LoopState>();
  state->items = iterate(eval(*statement.expr, scope));
  state->depth = ++loops_;
  struct Leave {
    int& loops;
    ~Leave() { --loops; }
  } leave{loops_};
  if (statement.condition != nullptr) {
    ValueList kept;
    for (TemplateValue& item : state->items) {
      const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
      assign(statement.target, item, inner);
      if (eval(*statement.condition, inner).truthy()) kept.push_back(std::move(item));
    }
    state->items = std::move(kept);
  }
  if (state->items.empty()) {
    exec(statement.otherwise, std::make_shared<TemplateScope>(TemplateScope{scope, {}}));
    return;
  }
  for (state->index = 0; state->index < state->items.size(); ++state->index) {
    // A scope of its own for each round: what is set inside is gone in the next.
    const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
    inner->set("loop", TemplateValue(state));
    assign(statement.target, state->items[state->index], inner);
    if (exec(statement.body, inner) == Flow::kBreak) break;
  }
}

void TemplateEvaluator::exec_with(const TemplateStatement& statement, const ScopePtr& scope) {
  const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
  for (std::size_t i = 0; i < statement.targets.size(); ++i) assign(statement.targets[i], eval(*statement.values[i], scope), inner);
  exec(statement.body, inner);
}

void TemplateEvaluator::exec_call_block(const TemplateStatement& statement, const ScopePtr& scope) {
  const TemplateExpr& call_expr = *statement.expr;
  const TemplateValue callee = eval(*call_expr.parts[0], scope);
  CallArguments arguments = eval_arguments(call_expr.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(statement, "caller", scope));
  emit(call(callee, arguments).to_string());
}

void TemplateEvaluator::assign(const AssignTarget& target, TemplateValue value, const ScopePtr& scope) {
  if (target.parts.empty()) {
    if (target.attribute.empty()) return scope->set(target.name, std::move(value));
    TemplateValue* holder = nullptr;
    for (TemplateScope* at = scope.get(); at != nullptr && holder == nullptr; at = at->parent.get()) holder = at->find(target.name);
    if (holder == nullptr || !holder->is_namespace()) fail_python("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    auto& attributes = holder->as_namespace().attributes;
    const auto present = std::find_if(attributes.begin(), attributes.end(), [&](const auto& attribute) { return attribute.first == target.attribute; });
    if (present != attributes.end()) {
      present->second = std::move(value);
    } else {
      attributes.emplace_back(target.attribute, std::move(value));
    }
    return;
  }
  if (!value.is_sequence() && !value.is_dict() && !value.is_string() && !value.is_undefined()) {
    fail_type("cannot unpack non-iterable " + value.type_name() + " object");
  }
  ValueList items = iterate(value);
  const std::string expected = std::to_string(target.parts.size());
  if (items.size() < target.parts.size()) {
    fail_python("ValueError", "not enough values to unpack (expected " + expected + ", got " + std::to_string(items.size()) + ")");
  }
  if (items.size() > target.parts.size()) fail_python("ValueError", "too many values to unpack (expected " + expected + ")");
  for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], std::move(items[i]), scope);
}

// ---- calls

TemplateValue TemplateEvaluator::make_macro(const TemplateStatement& statement, const std::string& name, const ScopePtr& scope) {
  macro_scopes_.push_back(scope);
  auto box = std::make_shared<CallableBox>();
  box->type_name = "Macro";
  box->name = name;
  // The evaluator outlives every value, and empties macro_scopes_, which breaks the circle scope -> macro -> scope.
  box->call = [&statement, name, scope](TemplateEvaluator& evaluator, const CallArguments& arguments) {
    return evaluator.call_macro(statement, name, scope, arguments);
  };
  charge(sizeof(CallableBox));
  return TemplateValue(TemplateValue::Callable(std::move(box)));
}

TemplateValue TemplateEvaluator::call_macro(const TemplateStatement& statement, const std::string& name, const ScopePtr& scope, const CallArguments& arguments) {
  const DepthGuard guard(calls_, limits_.depth_max);
  const auto& parameters = statement.parameters;
  if (arguments.positional.size() > parameters.size()) {
    fail_type("macro '" + name + "' takes not more than " + std::to_string(parameters.size()) + " argument(s)");
  }
  const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
  for (const auto& [keyword, value] : arguments.named) {
    const auto is_keyword = [&name = keyword](const Parameter& parameter) { return parameter.name == name; };  // clang 14 captures no binding
    const bool known = std::any_of(parameters.begin(), parameters.end(), is_keyword);
    if (!known && keyword != "caller") fail_type("macro '" + name + "' takes no keyword argument '" + keyword + "'");
    if (keyword == "caller") inner->set(keyword, value);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (const TemplateValue* given = arguments.find(i, parameter.name)) {
      inner->set(parameter.name, *given);
    } else if (parameter.otherwise != nullptr) {
      inner->set(parameter.name, eval(*parameter.otherwise, inner));
    } else {
      inner->set(parameter.name, TemplateValue::undefined("parameter '" + parameter.name + "' was not provided"));
    }
  }
  return TemplateValue(capture(statement.body, inner));
}

TemplateValue TemplateEvaluator::call(const TemplateValue& callee, const CallArguments& arguments) {
  require_defined(callee);
  if (!callee.is_callable()) {
    if (callee.is_loop()) fail_unsupported(line_, "a recursive loop");
    fail_type("'" + callee.type_name() + "' object is not callable");
  }
  return callee.as_callable().call(*this, arguments);
}

TemplateValue TemplateEvaluator::filter(std::string_view name, const TemplateValue& input, const CallArguments& arguments) {
  const FilterFunction function = find_filter(name);
  if (function == nullptr) fail_unsupported(line_, "the filter '" + std::string(name) + "'");
  return function(*this, input, arguments);
}

bool TemplateEvaluator::test(std::string_view name, const TemplateValue& input, const CallArguments& arguments) {
  const TestFunction function = find_test(name);
  if (function == nullptr) fail_unsupported(line_, "the test '" + std::string(name) + "'");
  return function(*this, input, arguments);
}

TemplateValue TemplateEvaluator::make_namespace(const CallArguments& arguments) {
  auto box = std::make_shared<NamespaceBox>();
  if (arguments.positional.size() > 1) fail_type("namespace() takes at most one dictionary");
  if (!arguments.positional.empty()) {
    if (!arguments.positional[0].is_dict()) fail_type("'" + arguments.positional[0].type_name() + "' object is not iterable");
    for (const auto& [key, value] : arguments.positional[0].as_dict().entries()) box->attributes.emplace_back(key.to_string(), value);
  }
  for (const auto& [name, value] : arguments.named) box->attributes.emplace_back(name, value);
  namespaces_.push_back(box);
  charge(sizeof(NamespaceBox) + 64);
  return TemplateValue(std::move(box));
}

ValueList TemplateEvaluator::iterate(const TemplateValue& value) {
  ValueList items;
  if (value.is_undefined()) {
    if (std::string_view(value.as_undefined().exception) != "UndefinedError") require_defined(value);
    return items;
  }
  if (value.is_sequence()) {
    items = value.items();
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict().entries()) items.push_back(key);
  } else if (value.is_string()) {
    for (std::string_view character : split_characters(value.as_string())) items.push_back(TemplateValue::text(character));
    charge(items.size() * 64);
  } else {
    fail_type("'" + value.type_name() + "' object is not iterable");
  }
  charge(items.size() * sizeof(TemplateValue));
  charge_steps(static_cast<std::int64_t>(items.size()));
  return items;
}

// ---- expressions

TemplateValue TemplateEvaluator::eval(const TemplateExpr& expr, const ScopePtr& scope) {
  const DepthGuard guard(frames_, kFramesMax);
  charge_steps(1);
  line_ = expr.line;
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.value;
    case ExprKind::kName:
      return eval_name(expr, scope);
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kDict:
      return eval_collection(expr, scope);
    case ExprKind::kNot:
      return !eval(*expr.parts[0], scope).truthy();
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
    case ExprKind::kConcat:
      return eval_operator(expr, scope);
    case ExprKind::kCompare:
      return eval_compare(expr, scope);
    case ExprKind::kConditional:
      if (eval(*expr.parts[1], scope).truthy()) return eval(*expr.parts[0], scope);
      if (expr.parts[2] != nullptr) return eval(*expr.parts[2], scope);
      return TemplateValue::undefined("the inline if-expression on line " + std::to_string(expr.line) + " evaluated to false and no else section was defined.");
    case ExprKind::kAttribute:
      return get_attribute(*this, eval(*expr.parts[0], scope), expr.text);
    case ExprKind::kSubscript: {
      const TemplateValue object = eval(*expr.parts[0], scope);
      return get_item(*this, object, eval(*expr.parts[1], scope));
    }
    case ExprKind::kSlice:
      return eval_slice(expr, scope);
    case ExprKind::kCall: {
      const TemplateValue callee = eval(*expr.parts[0], scope);
      const CallArguments arguments = eval_arguments(expr.arguments, scope);
      line_ = expr.line;
      return call(callee, arguments);
    }
    case ExprKind::kFilter:
      return eval_filter(expr, nullptr, scope);
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
      members.set(std::move(key), eval(*expr.parts[i + 1], scope));
    }
    return TemplateValue::dict(std::move(members));
  }
  ValueList items;
  items.reserve(expr.parts.size());
  for (const ExprPtr& part : expr.parts) items.push_back(eval(*part, scope));
  return expr.kind == ExprKind::kList ? TemplateValue::list(std::move(items)) : TemplateValue::tuple(std::move(items));
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
    for (const ExprPtr& part : expr.parts) text += eval(*part, scope).to_string();
    charge(text.size());
    return text;
  }
  const TemplateValue value = eval(*expr.parts[0], scope);
  require_defined(value);
  const bool negative = expr.kind == ExprKind::kNegative;
  if (!value.is_number()) fail_type(std::string("bad operand type for unary ") + (negative ? "-" : "+") + ": '" + value.type_name() + "'");
  if (value.is_float()) return negative ? -value.as_double() : value.as_double();
  if (negative && value.as_int() == INT64_MIN) fail_python("OverflowError", "integer beyond 64 bits");
  return negative ? -value.as_int() : value.as_int();
}

TemplateValue TemplateEvaluator::eval_compare(const TemplateExpr& expr, const ScopePtr& scope) {
  TemplateValue left = eval(*expr.parts[0], scope);
  for (std::size_t i = 0; i < expr.names.size(); ++i) {
    TemplateValue right = eval(*expr.parts[i + 1], scope);
    const std::string& op = expr.names[i];
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = equal_values(left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(*this, right, left) == (op == "in");
    } else {
      const bool nan = (left.is_float() && left.as_double() != left.as_double()) || (right.is_float() && right.as_double() != right.as_double());
      const int order = compare_values(left, right, op.c_str());
      holds = !nan && (op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0);
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
    if (!bound.is_int() && !bound.is_bool()) fail_type("slice indices must be integers or None or have an __index__ method");
    bounds[i] = bound.as_int();
  }
  const std::int64_t step = bounds[2].value_or(1);
  if (step == 0) fail_python("ValueError", "slice step cannot be zero");
  if (!object.is_string() && !object.is_sequence()) {
    return TemplateValue::undefined("'" + object.type_name() + " object' has no slices");  // as a failed a[...] gives
  }
  const bool is_string = object.is_string();
  ValueList all = is_string ? iterate(object) : object.items();
  const auto size = static_cast<std::int64_t>(all.size());
  const auto clamp = [size, step](std::int64_t at) {
    if (at < 0) at = at < -size ? -1 : at + size;
    const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    return std::clamp(at, low, std::max(low, high));
  };
  const std::int64_t start = bounds[0] ? clamp(*bounds[0]) : (step < 0 ? size - 1 : 0);
  const std::int64_t stop = bounds[1] ? clamp(*bounds[1]) : (step < 0 ? -1 : size);
  ValueList items;
  // A step beyond the size takes one item; it must not overflow the counter.
  const std::int64_t stride = std::clamp(step, -size - 1, size + 1);
  for (std::int64_t i = start; stride > 0 ? i < stop : i > stop; i += stride) items.push_back(all[static_cast<std::size_t>(i)]);
  charge(items.size() * sizeof(TemplateValue));
  if (is_string) {
    std::string text;
    for (const TemplateValue& item : items) text += item.as_string();
    return text;
  }
  return object.is_list() ? TemplateValue::list(std::move(items)) : TemplateValue::tuple(std::move(items));
}

TemplateValue TemplateEvaluator::eval_filter(const TemplateExpr& expr, const TemplateValue* block_text, const ScopePtr& scope) {
  const DepthGuard guard(frames_, kFramesMax);
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

CallArguments TemplateEvaluator::eval_arguments(const std::vector<Argument>& arguments, const ScopePtr& scope) {
  CallArguments result;
  for (const Argument& argument : arguments) {
    TemplateValue value = eval(*argument.value, scope);
    switch (argument.form) {
      case Argument::Form::kPositional:
        result.positional.push_back(std::move(value));
        break;
      case Argument::Form::kKeyword:
        result.named.emplace_back(argument.name, std::move(value));
        break;
      case Argument::Form::kStar:
        for (TemplateValue& item : iterate(value)) result.positional.push_back(std::move(item));
        break;
      case Argument::Form::kDoubleStar:
        if (!value.is_dict()) fail_type("argument after ** must be a mapping, not " + value.type_name());
        for (const auto& [key, item] : value.as_dict().entries()) result.named.emplace_back(key.to_string(), item);
        break;
    }
  }
  return result;
}

// ---- arguments

const TemplateValue* CallArguments::find_named(std::string_view name) const {
  for (const auto& [present, value] : named) {
    if (present == name) return &value;
  }
  return nullptr;
}

const TemplateValue* CallArguments::find(std::size_t position, std::string_view name) const {
  return position < positional.size() ? &positional[position] : find_named(name);
}

void CallArguments::check(std::string_view function, std::initializer_list<std::string_view> names) const {
  if (positional.size() > names.size()) {
    fail_type(std::string(function) + "() takes at most " + std::to_string(names.size()) + " arguments (" + std::to_string(positional.size()) + " given)");
  }
  for (const auto& [name, value] : named) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fail_type(std::string(function) + "() got an unexpected keyword argument '" + name + "'");
    }
  }
}

std::string CallArguments::text(std::size_t position, std::string_view name, std::string_view otherwise) const {
  const TemplateValue* value = find(position, name);
  if (value == nullptr) return std::string(otherwise);
  require_defined(*value);
  return value->to_string();
}

std::int64_t CallArguments::integer(std::size_t position, std::string_view name, std::int64_t otherwise) const {
  const TemplateValue* value = find(position, name);
  if (value == nullptr) return otherwise;
  require_defined(*value);
  if (!value->is_int() && !value->is_bool()) fail_type("'" + value->type_name() + "' object cannot be interpreted as an integer");
  return value->as_int();
}

bool CallArguments::flag(std::size_t position, std::string_view name, bool otherwise) const {
  const TemplateValue* value = find(position, name);
  return value == nullptr ? otherwise : value->truthy();
}

}  // namespace rl
