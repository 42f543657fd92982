// TemplateEvaluator: computes the expressions of a template, and serves its built-ins, which are in
// filters.cpp, list_filters.cpp, value_tests.cpp, methods.cpp, arithmetic.cpp, percent_format.cpp
// and globals.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/template/arguments.h"
#include "rl/template/ast.h"
#include "rl/template/budget.h"
#include "rl/template/scope.h"
#include "rl/template/template.h"
#include "rl/template/value.h"

namespace rl {

/// Of one rendering. Everything throws TemplateFailure.
class TemplateEvaluator {
 public:
  TemplateEvaluator(const nlohmann::ordered_json& variables, const TemplateLimits& limits);
  ~TemplateEvaluator();
  TemplateEvaluator(const TemplateEvaluator&) = delete;
  TemplateEvaluator& operator=(const TemplateEvaluator&) = delete;

  TemplateValue eval(const TemplateExpr& expr, const ScopePtr& scope);
  /// A chain of filters; `block_text` is what the first one filters where it names no input.
  TemplateValue eval_filter(const TemplateExpr& expr, const TemplateValue* block_text,
                            const ScopePtr& scope);
  CallArguments eval_arguments(const std::vector<Argument>& arguments, const ScopePtr& scope);

  /// The scope of the template's variables.
  const ScopePtr& root() const { return root_; }
  RenderBudget& budget() { return budget_; }
  /// The line that failures name.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  // For the built-ins.
  TemplateValue call(const TemplateValue& callee, const CallArguments& arguments);
  TemplateValue filter(std::string_view name, const TemplateValue& input,
                       const CallArguments& arguments);
  bool test(std::string_view name, const TemplateValue& input, const CallArguments& arguments);
  /// The items to loop over: of a list, a dictionary's keys, a string's characters. TypeError for
  /// what has none.
  ValueList iterate(const TemplateValue& value);
  void charge(std::size_t bytes) { budget_.charge(bytes); }
  void charge_steps(std::int64_t steps) { budget_.charge_steps(steps); }
  void charge_scan(std::size_t bytes) { budget_.charge_scan(bytes); }
  void charge_characters(std::size_t bytes) { budget_.charge_characters(bytes); }
  /// Keeps a loop to the end, since it holds what may hold it.
  void keep(std::shared_ptr<LoopState> loop) { kept_loops_.push_back(std::move(loop)); }
  TemplateValue make_namespace(const CallArguments& arguments);
  const TemplateValue* root_variable(std::string_view name) { return root_->find(name); }

 private:
  TemplateValue eval_collection(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_operator(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_compare(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_slice(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_name(const TemplateExpr& expr, const ScopePtr& scope);

  RenderBudget budget_;
  ScopePtr root_;
  int line_ = 1;
  // What can hold itself: emptied at the end, so that nothing leaks.
  std::vector<std::shared_ptr<NamespaceBox>> namespaces_;
  std::vector<std::shared_ptr<LoopState>> kept_loops_;
};

}  // namespace rl
