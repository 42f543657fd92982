// Evaluates a parsed template: variables, control flow, calls, limits. What the language's
// built-ins do is in template_filters.cpp, template_tests.cpp, template_methods.cpp,
// template_arithmetic.cpp and template_globals.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl/text/template.h"
#include "rl/text/template_ast.h"
#include "rl/text/template_value.h"

namespace rl {

/// What a call was given.
struct CallArguments {
  ValueList positional;
  std::vector<std::pair<std::string, TemplateValue>> named;

  /// The argument at a position or under a name; nullptr when it was not given.
  const TemplateValue* find(std::size_t position, std::string_view name) const;
  const TemplateValue* find_named(std::string_view name) const;
  /// Throws TypeError for more arguments than `names`, or for a name that is not among them.
  void check(std::string_view function, std::initializer_list<std::string_view> names) const;
  std::string text(TemplateEvaluator& evaluator, std::size_t position, std::string_view name,
                   std::string_view otherwise) const;
  std::int64_t integer(std::size_t position, std::string_view name, std::int64_t otherwise) const;
  bool flag(std::size_t position, std::string_view name, bool otherwise) const;
};

/// The loop that `loop` stands for.
struct LoopState {
  ValueList items;
  std::size_t index = 0;
  std::int64_t depth = 1;
  int value_depth = 1;  // of its items, and one
  bool has_changed_value = false;
  ValueList changed_value;  // what loop.changed(...) saw last
};

struct TemplateScope {
  std::shared_ptr<TemplateScope> parent;
  std::vector<std::pair<std::string, TemplateValue>> variables;

  TemplateValue* find(std::string_view name);
  void set(std::string_view name, TemplateValue value);
};

/// Counts nested evaluations, also when one throws; too many are Python's RecursionError.
class TemplateDepthGuard {
 public:
  TemplateDepthGuard(int& depth, int most);
  ~TemplateDepthGuard() { --depth_; }
  TemplateDepthGuard(const TemplateDepthGuard&) = delete;
  TemplateDepthGuard& operator=(const TemplateDepthGuard&) = delete;

 private:
  int& depth_;
};

/// One rendering; used once. Everything throws TemplateFailure.
class TemplateEvaluator {
 public:
  TemplateEvaluator(const nlohmann::ordered_json& variables, const TemplateLimits& limits);
  ~TemplateEvaluator();
  TemplateEvaluator(const TemplateEvaluator&) = delete;
  TemplateEvaluator& operator=(const TemplateEvaluator&) = delete;

  std::string run(const Block& block);

  // For the built-ins.
  TemplateValue call(const TemplateValue& callee, const CallArguments& arguments);
  TemplateValue filter(std::string_view name, const TemplateValue& input,
                       const CallArguments& arguments);
  bool test(std::string_view name, const TemplateValue& input, const CallArguments& arguments);
  /// The items to loop over: of a list, a dictionary's keys, a string's characters. TypeError for
  /// what has none.
  ValueList iterate(const TemplateValue& value);
  /// Accounts for memory made on the way.
  void charge(std::size_t bytes);
  void charge_steps(std::int64_t steps);
  /// Accounts for looking at bytes (a nanosecond each), or at characters (tens of them).
  void charge_scan(std::size_t bytes) { charge_steps(static_cast<std::int64_t>(bytes / 32)); }
  void charge_characters(std::size_t bytes) { charge_steps(static_cast<std::int64_t>(bytes / 4)); }
  /// Keeps a loop to the end, since it holds what may hold it.
  void keep(std::shared_ptr<LoopState> loop) { kept_loops_.push_back(std::move(loop)); }
  int line() const { return line_; }
  TemplateValue make_namespace(const CallArguments& arguments);
  const TemplateValue* root_variable(std::string_view name) { return root_->find(name); }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  using ScopePtr = std::shared_ptr<TemplateScope>;
  static constexpr int kFramesMax =
      1500;  // nested evaluations; a frame is about a kilobyte of stack

  TemplateValue eval(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_collection(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_operator(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_compare(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_slice(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_name(const TemplateExpr& expr, const ScopePtr& scope);
  TemplateValue eval_filter(const TemplateExpr& expr, const TemplateValue* block_text,
                            const ScopePtr& scope);
  CallArguments eval_arguments(const std::vector<Argument>& arguments, const ScopePtr& scope);

  Flow exec(const Block& block, const ScopePtr& scope);
  Flow exec_one(const TemplateStatement& statement, const ScopePtr& scope);
  Flow exec_if(const TemplateStatement& statement, const ScopePtr& scope);
  void exec_for(const TemplateStatement& statement, const ScopePtr& scope);
  void exec_with(const TemplateStatement& statement, const ScopePtr& scope);
  void exec_call_block(const TemplateStatement& statement, const ScopePtr& scope);
  std::string capture(const Block& block, const ScopePtr& scope);
  void assign(const AssignTarget& target, TemplateValue value, const ScopePtr& scope);
  TemplateValue make_macro(const TemplateStatement& statement, const std::string& name,
                           const ScopePtr& scope);
  TemplateValue call_macro(const TemplateStatement& statement, const std::string& name,
                           const ScopePtr& scope, const CallArguments& arguments);
  void emit(std::string_view text);

  TemplateLimits limits_;
  ScopePtr root_;
  std::string* out_ = nullptr;
  std::int64_t steps_ = 0;
  std::size_t work_bytes_ = 0;
  int frames_ = 0;  // nested evaluations
  int calls_ = 0;   // nested macro calls
  int line_ = 1;
  // What can hold itself: emptied at the end, so that nothing leaks.
  std::vector<std::shared_ptr<NamespaceBox>> namespaces_;
  std::vector<ScopePtr> macro_scopes_;
  std::vector<std::shared_ptr<LoopState>> kept_loops_;
};

}  // namespace rl
