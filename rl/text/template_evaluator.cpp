#include "rl/text/template_evaluator.h"

#include <algorithm>

#include "rl/text/template_builtins.h"
#include "rl/text/template_failure.h"
#include "rl/text/template_string.h"

namespace rl {
TemplateDepthGuard::TemplateDepthGuard(int& depth, int most) : depth_(depth) {
  if (depth_ >= most) fail_python("RecursionError", "maximum recursion depth exceeded");
  ++depth_;
}

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

TemplateEvaluator::TemplateEvaluator(const nlohmann::ordered_json& variables,
                                     const TemplateLimits& limits)
    : limits_(limits), root_(std::make_shared<TemplateScope>()) {
  if (!variables.is_object()) fail_type("the variables of a template must be an object");
  for (const auto& [name, value] : variables.items())
    root_->set(name, TemplateValue::from_json(value));
}

TemplateEvaluator::~TemplateEvaluator() {
  for (const auto& box : namespaces_) box->attributes.clear();
  for (const auto& loop : kept_loops_) loop->changed_value.clear();
  for (const ScopePtr& scope : macro_scopes_) scope->variables.clear();
}

std::string TemplateEvaluator::run(const Block& block) { return capture(block, root_); }

void TemplateEvaluator::charge(std::size_t bytes) {
  work_bytes_ += bytes;
  if (work_bytes_ > limits_.work_bytes_max)
    fail_limit("rendering needs more than " + std::to_string(limits_.work_bytes_max) +
               " bytes of memory");
}

void TemplateEvaluator::charge_steps(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.steps_max)
    fail_limit("rendering takes more than " + std::to_string(limits_.steps_max) + " steps");
}

void TemplateEvaluator::emit(std::string_view text) {
  if (out_->size() + text.size() > limits_.output_bytes_max)
    fail_limit("rendering gives more than " + std::to_string(limits_.output_bytes_max) + " bytes");
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
  const TemplateDepthGuard guard(frames_, kFramesMax);
  for (const TemplateStatement& statement : block) {
    charge_steps(1);
    line_ = statement.line;
    const Flow flow = exec_one(statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

TemplateEvaluator::Flow TemplateEvaluator::exec_one(const TemplateStatement& statement,
                                                    const ScopePtr& scope) {
  const auto inner_scope = [&scope] {
    return std::make_shared<TemplateScope>(TemplateScope{scope, {}});
  };
  switch (statement.kind) {
    case StatementKind::kText: emit(statement.text); break;
    case StatementKind::kOutput: emit(eval(*statement.expr, scope).to_string(*this)); break;
    case StatementKind::kIf: return exec_if(statement, scope);
    case StatementKind::kFor: exec_for(statement, scope); break;
    case StatementKind::kSet: assign(statement.target, eval(*statement.expr, scope), scope); break;
    case StatementKind::kSetBlock: {
      TemplateValue text(capture(statement.body, inner_scope()));
      if (statement.expr != nullptr) text = eval_filter(*statement.expr, &text, scope);
      assign(statement.target, std::move(text), scope);
      break;
    }
    case StatementKind::kMacro:
      scope->set(statement.text, make_macro(statement, statement.text, scope));
      break;
    case StatementKind::kCallBlock: exec_call_block(statement, scope); break;
    case StatementKind::kFilterBlock: {
      const TemplateValue text(capture(statement.body, inner_scope()));
      const TemplateValue filtered = eval_filter(*statement.expr, &text, scope);
      if (!filtered.is_string())
        fail_type("sequence item 0: expected str instance, " + filtered.type_name() + " found");
      emit(filtered.as_string());
      break;
    }
    case StatementKind::kWith: exec_with(statement, scope); break;
    case StatementKind::kScope: return exec(statement.body, inner_scope());
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNormal;
}

TemplateEvaluator::Flow TemplateEvaluator::exec_if(const TemplateStatement& statement,
                                                   const ScopePtr& scope) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || eval(*branch.condition, scope).truthy())
      return exec(branch.body, scope);
  }
  return Flow::kNormal;
}

void TemplateEvaluator::exec_for(const TemplateStatement& statement, const ScopePtr& scope) {
  auto state = std::make_shared<LoopState>();
  state->items = iterate(eval(*statement.expr, scope));
  if (statement.condition != nullptr) {
    ValueList kept;
    for (TemplateValue& item : state->items) {
      const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
      assign(statement.target, item, inner);
      if (eval(*statement.condition, inner).truthy()) kept.push_back(std::move(item));
    }
    state->items = std::move(kept);
  }
  for (const TemplateValue& item : state->items)
    state->value_depth = std::max(state->value_depth, item.depth() + 1);
  check_value_depth(state->value_depth);
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
  for (std::size_t i = 0; i < statement.targets.size(); ++i)
    assign(statement.targets[i], eval(*statement.values[i], scope), inner);
  exec(statement.body, inner);
}

void TemplateEvaluator::exec_call_block(const TemplateStatement& statement, const ScopePtr& scope) {
  const TemplateExpr& call_expr = *statement.expr;
  const TemplateValue callee = eval(*call_expr.parts[0], scope);
  CallArguments arguments = eval_arguments(call_expr.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(statement, "caller", scope));
  emit(call(callee, arguments).to_string(*this));
}

void TemplateEvaluator::assign(const AssignTarget& target, TemplateValue value,
                               const ScopePtr& scope) {
  if (target.parts.empty()) {
    if (target.attribute.empty()) return scope->set(target.name, std::move(value));
    TemplateValue* holder = nullptr;
    for (TemplateScope* at = scope.get(); at != nullptr && holder == nullptr; at = at->parent.get())
      holder = at->find(target.name);
    if (holder == nullptr || !holder->is_namespace())
      fail_python("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    auto& attributes = holder->as_namespace().attributes;
    charge_steps(static_cast<std::int64_t>(attributes.size() / 16));
    const auto present =
        std::find_if(attributes.begin(), attributes.end(),
                     [&](const auto& attribute) { return attribute.first == target.attribute; });
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
    fail_python("ValueError", "not enough values to unpack (expected " + expected + ", got " +
                                  std::to_string(items.size()) + ")");
  }
  if (items.size() > target.parts.size())
    fail_python("ValueError", "too many values to unpack (expected " + expected + ")");
  for (std::size_t i = 0; i < items.size(); ++i)
    assign(target.parts[i], std::move(items[i]), scope);
}

// ---- calls

TemplateValue TemplateEvaluator::make_macro(const TemplateStatement& statement,
                                            const std::string& name, const ScopePtr& scope) {
  macro_scopes_.push_back(scope);
  auto box = std::make_shared<CallableBox>();
  box->type_name = "Macro";
  box->name = statement.kind == StatementKind::kCallBlock ? "" : name;  // a caller has none
  // The evaluator outlives every value, and empties macro_scopes_, which breaks the circle scope ->
  // macro -> scope.
  box->call = [&statement, name, scope](TemplateEvaluator& evaluator,
                                        const CallArguments& arguments) {
    return evaluator.call_macro(statement, name, scope, arguments);
  };
  ValueList names;
  for (const Parameter& parameter : statement.parameters)
    names.push_back(TemplateValue::text(parameter.name));
  box->attributes = {{"name", box->name.empty() ? TemplateValue() : TemplateValue(name)},
                     {"arguments", TemplateValue::tuple(std::move(names))},
                     {"catch_kwargs", TemplateValue(statement.takes_kwargs)},
                     {"catch_varargs", TemplateValue(statement.takes_varargs)},
                     {"caller", TemplateValue(statement.takes_caller)}};
  charge(sizeof(CallableBox) + statement.parameters.size() * sizeof(TemplateValue) + 256);
  return TemplateValue(TemplateValue::Callable(std::move(box)));
}

TemplateValue TemplateEvaluator::call_macro(const TemplateStatement& statement,
                                            const std::string& name, const ScopePtr& scope,
                                            const CallArguments& arguments) {
  const TemplateDepthGuard guard(calls_, limits_.depth_max);
  const auto& parameters = statement.parameters;
  if (arguments.positional.size() > parameters.size() && !statement.takes_varargs) {
    fail_type("macro '" + name + "' takes not more than " + std::to_string(parameters.size()) +
              " argument(s)");
  }
  const auto inner = std::make_shared<TemplateScope>(TemplateScope{scope, {}});
  DictBox surplus;
  const bool has_caller =
      std::any_of(parameters.begin(), parameters.end(),
                  [](const Parameter& parameter) { return parameter.name == "caller"; });
  if (statement.takes_caller && !has_caller)
    inner->set("caller", TemplateValue::undefined("No caller defined"));
  for (const auto& [keyword, value] : arguments.named) {
    const auto is_keyword = [&name = keyword](const Parameter& parameter) {
      return parameter.name == name;
    };  // clang 14 captures no binding
    const bool known = std::any_of(parameters.begin(), parameters.end(), is_keyword);
    if (known) continue;
    if (keyword == "caller" && statement.takes_caller) {
      inner->set(keyword, value);
    } else if (statement.takes_kwargs) {
      surplus.set_text(keyword, value);
    } else if (keyword == "caller") {
      fail_type("macro '" + name +
                "' was invoked with two values for the special caller argument. This is most "
                "likely a bug.");
    } else {
      fail_type("macro '" + name + "' takes no keyword argument '" + keyword + "'");
    }
  }
  if (statement.takes_kwargs) inner->set("kwargs", TemplateValue::dict(std::move(surplus)));
  if (statement.takes_varargs) {
    const auto first =
        static_cast<std::ptrdiff_t>(std::min(parameters.size(), arguments.positional.size()));
    inner->set("varargs", TemplateValue::tuple(ValueList(arguments.positional.begin() + first,
                                                         arguments.positional.end())));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    if (const TemplateValue* given = arguments.find(i, parameter.name)) {
      inner->set(parameter.name, *given);
    } else if (parameter.otherwise != nullptr) {
      inner->set(parameter.name, eval(*parameter.otherwise, inner));
    } else {
      inner->set(parameter.name,
                 TemplateValue::undefined("parameter '" + parameter.name + "' was not provided"));
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
      box->attributes.emplace_back(key.to_string(*this), value);
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
