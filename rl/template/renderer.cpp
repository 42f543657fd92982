#include "rl/template/renderer.h"

#include <algorithm>
#include <utility>

#include "rl/template/failure.h"

namespace rl {

TemplateRenderer::TemplateRenderer(const nlohmann::ordered_json& variables,
                                   const TemplateLimits& limits)
    : evaluator_(variables, limits) {}

TemplateRenderer::~TemplateRenderer() {
  for (const ScopePtr& scope : macro_scopes_) scope->variables.clear();
}

std::string TemplateRenderer::run(const Block& block) {
  return capture(block, evaluator_.root()).text;
}

void TemplateRenderer::emit(std::string_view text) {
  evaluator_.budget().check_output(out_->size() + text.size());
  evaluator_.charge(text.size());
  *out_ += text;
}

TemplateRenderer::Captured TemplateRenderer::capture(const Block& block, const ScopePtr& scope) {
  Captured captured;
  std::string* const outer = std::exchange(out_, &captured.text);
  struct Restore {
    std::string*& out;
    std::string* outer;
    ~Restore() { out = outer; }
  } restore{out_, outer};
  captured.flow = exec(block, scope);
  return captured;
}

TemplateRenderer::Flow TemplateRenderer::exec(const Block& block, const ScopePtr& scope) {
  const TemplateDepthGuard guard = evaluator_.budget().nest();
  for (const TemplateStatement& statement : block) {
    evaluator_.charge_steps(1);
    evaluator_.set_line(statement.line);
    const Flow flow = exec_one(statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

TemplateRenderer::Flow TemplateRenderer::exec_one(const TemplateStatement& statement,
                                                  const ScopePtr& scope) {
  switch (statement.kind) {
    case StatementKind::kText: emit(statement.text); break;
    case StatementKind::kOutput:
      emit(evaluator_.eval(*statement.expr, scope).to_string(evaluator_.budget()));
      break;
    case StatementKind::kIf: return exec_if(statement, scope);
    case StatementKind::kFor: exec_for(statement, scope); break;
    case StatementKind::kSet:
      assign(statement.target, evaluator_.eval(*statement.expr, scope), scope);
      break;
    case StatementKind::kSetBlock: {
      Captured captured = capture(statement.body, inner_scope(scope));
      if (captured.flow != Flow::kNormal) return captured.flow;
      TemplateValue text(std::move(captured.text));
      if (statement.expr != nullptr) text = evaluator_.eval_filter(*statement.expr, &text, scope);
      assign(statement.target, std::move(text), scope);
      break;
    }
    case StatementKind::kMacro:
      scope->set(statement.text, make_macro(statement, statement.text, scope));
      break;
    case StatementKind::kCallBlock: exec_call_block(statement, scope); break;
    case StatementKind::kFilterBlock: {
      Captured captured = capture(statement.body, inner_scope(scope));
      if (captured.flow != Flow::kNormal) return captured.flow;
      const TemplateValue text(std::move(captured.text));
      const TemplateValue filtered = evaluator_.eval_filter(*statement.expr, &text, scope);
      if (!filtered.is_string())
        fail_type("sequence item 0: expected str instance, " + filtered.type_name() + " found");
      emit(filtered.as_string());
      break;
    }
    case StatementKind::kWith: return exec_with(statement, scope);
    case StatementKind::kScope: return exec(statement.body, inner_scope(scope));
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNormal;
}

TemplateRenderer::Flow TemplateRenderer::exec_if(const TemplateStatement& statement,
                                                 const ScopePtr& scope) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || evaluator_.eval(*branch.condition, scope).truthy())
      return exec(branch.body, scope);
  }
  return Flow::kNormal;
}

void TemplateRenderer::exec_for(const TemplateStatement& statement, const ScopePtr& scope) {
  auto state = std::make_shared<LoopState>();
  state->items = evaluator_.iterate(evaluator_.eval(*statement.expr, scope));
  if (statement.condition != nullptr) {
    ValueList kept;
    for (TemplateValue& item : state->items) {
      const auto inner = inner_scope(scope);
      assign(statement.target, item, inner);
      if (evaluator_.eval(*statement.condition, inner).truthy()) kept.push_back(std::move(item));
    }
    state->items = std::move(kept);
  }
  for (const TemplateValue& item : state->items)
    state->value_depth = std::max(state->value_depth, item.depth() + 1);
  check_value_depth(state->value_depth);
  if (state->items.empty()) {
    exec(statement.otherwise, inner_scope(scope));
    return;
  }
  for (state->index = 0; state->index < state->items.size(); ++state->index) {
    // Each round has its own scope: what is set inside is gone in the next.
    const auto inner = inner_scope(scope);
    inner->set("loop", TemplateValue(state));
    assign(statement.target, state->items[state->index], inner);
    if (exec(statement.body, inner) == Flow::kBreak) break;
  }
}

TemplateRenderer::Flow TemplateRenderer::exec_with(const TemplateStatement& statement,
                                                   const ScopePtr& scope) {
  const auto inner = inner_scope(scope);
  for (std::size_t i = 0; i < statement.targets.size(); ++i)
    assign(statement.targets[i], evaluator_.eval(*statement.values[i], scope), inner);
  return exec(statement.body, inner);
}

void TemplateRenderer::exec_call_block(const TemplateStatement& statement, const ScopePtr& scope) {
  const TemplateExpr& call_expr = *statement.expr;
  const TemplateValue callee = evaluator_.eval(*call_expr.parts[0], scope);
  CallArguments arguments = evaluator_.eval_arguments(call_expr.arguments, scope);
  arguments.named.emplace_back("caller", make_macro(statement, "caller", scope));
  emit(evaluator_.call(callee, arguments).to_string(evaluator_.budget()));
}

void TemplateRenderer::assign(const AssignTarget& target, TemplateValue value,
                              const ScopePtr& scope) {
  if (target.parts.empty()) {
    if (target.attribute.empty()) return scope->set(target.name, std::move(value));
    TemplateValue* holder = nullptr;
    for (TemplateScope* at = scope.get(); at != nullptr && holder == nullptr; at = at->parent.get())
      holder = at->find(target.name);
    if (holder == nullptr || !holder->is_namespace())
      fail_python("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    auto& attributes = holder->as_namespace().attributes;
    evaluator_.charge_steps(static_cast<std::int64_t>(attributes.size() / 16));
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
  ValueList items = evaluator_.iterate(value);
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

TemplateValue TemplateRenderer::make_macro(const TemplateStatement& statement,
                                           const std::string& name, const ScopePtr& scope) {
  macro_scopes_.push_back(scope);
  auto box = std::make_shared<CallableBox>();
  box->type_name = "Macro";
  box->name = statement.kind == StatementKind::kCallBlock ? "" : name;  // a caller has none
  // The renderer outlives every value, and empties macro_scopes_, which breaks the circle scope ->
  // macro -> scope.
  box->call = [this, &statement, name, scope](const CallArguments& arguments) {
    return call_macro(statement, name, scope, arguments);
  };
  ValueList names;
  for (const Parameter& parameter : statement.parameters)
    names.push_back(TemplateValue::text(parameter.name));
  box->attributes = {{"name", box->name.empty() ? TemplateValue() : TemplateValue(name)},
                     {"arguments", TemplateValue::tuple(std::move(names))},
                     {"catch_kwargs", TemplateValue(statement.takes_kwargs)},
                     {"catch_varargs", TemplateValue(statement.takes_varargs)},
                     {"caller", TemplateValue(statement.takes_caller)}};
  evaluator_.charge(sizeof(CallableBox) + statement.parameters.size() * sizeof(TemplateValue) +
                    256);
  return TemplateValue(TemplateValue::Callable(std::move(box)));
}

TemplateValue TemplateRenderer::call_macro(const TemplateStatement& statement,
                                           const std::string& name, const ScopePtr& scope,
                                           const CallArguments& arguments) {
  const TemplateDepthGuard guard = evaluator_.budget().nest_call();
  const auto& parameters = statement.parameters;
  if (arguments.positional.size() > parameters.size() && !statement.takes_varargs) {
    fail_type("macro '" + name + "' takes not more than " + std::to_string(parameters.size()) +
              " argument(s)");
  }
  const auto inner = inner_scope(scope);
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
      inner->set(parameter.name, evaluator_.eval(*parameter.otherwise, inner));
    } else {
      inner->set(parameter.name,
                 TemplateValue::undefined("parameter '" + parameter.name + "' was not provided"));
    }
  }
  return TemplateValue(capture(statement.body, inner).text);
}

}  // namespace rl
