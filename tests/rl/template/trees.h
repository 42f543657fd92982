// Trees of expressions: made by hand, and in one line of text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/template/ast.h"
#include "rl/template/budget.h"

namespace rl::testing {

template <class... Parts>
ExprPtr tree(ExprKind kind, std::string text, Parts... parts) {
  auto node = std::make_unique<TemplateExpr>();
  node->kind = kind;
  node->text = std::move(text);
  (node->parts.push_back(std::move(parts)), ...);
  return node;
}

inline ExprPtr constant(TemplateValue value) {
  ExprPtr node = tree(ExprKind::kConstant, "");
  node->value = std::move(value);
  return node;
}
inline ExprPtr constant(int value) { return constant(TemplateValue(std::int64_t{value})); }
inline ExprPtr constant(const char* value) { return constant(TemplateValue::text(value)); }
inline ExprPtr variable(std::string name) { return tree(ExprKind::kName, std::move(name)); }

/// The values, as a list prints them.
inline std::string shown(const ValueList& values) {
  RenderBudget budget{TemplateLimits{}};
  return TemplateValue::list(values).repr(budget);
}
inline std::string shown(const TemplateValue& value) {
  RenderBudget budget{TemplateLimits{}};
  return value.is_undefined() ? "undefined: " + value.as_undefined().message : value.repr(budget);
}

/// "(+ a 1)": the operator or the kind's word, then the parts; "-" for a part that is not there.
inline std::string shown(const ExprPtr& node) {
  if (node == nullptr) return "-";
  constexpr std::string_view kWords[] = {"",    "",      "list",  "tuple", "dict",   "not", "neg",
                                         "pos", "and",   "or",    "",      "~",      "",    "if",
                                         ".",   "index", "slice", "call",  "filter", "is"};
  if (node->kind == ExprKind::kConstant) return shown(node->value);
  if (node->kind == ExprKind::kName) return node->text;
  std::string line = "(" + std::string(kWords[static_cast<std::size_t>(node->kind)]);
  for (const std::string& name : node->names) line += line.size() == 1 ? name : " " + name;
  if (!node->text.empty()) line += line.size() == 1 ? node->text : " " + node->text;
  for (const ExprPtr& part : node->parts) line += " " + shown(part);
  for (const Argument& argument : node->arguments) {
    switch (argument.form) {
      case Argument::Form::kPositional: line += ", "; break;
      case Argument::Form::kKeyword: line += ", " + argument.name + "="; break;
      case Argument::Form::kStar: line += ", *"; break;
      case Argument::Form::kDoubleStar: line += ", **"; break;
    }
    line += shown(argument.value);
  }
  return line + ")";
}

}  // namespace rl::testing
