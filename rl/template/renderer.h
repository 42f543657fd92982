// TemplateRenderer: executes the statements of a template: output, control flow, macros.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rl/template/ast.h"
#include "rl/template/evaluator.h"
#include "rl/template/scope.h"
#include "rl/template/template.h"

namespace rl {

/// One rendering; used once. Everything throws TemplateFailure.
class TemplateRenderer {
 public:
  TemplateRenderer(const nlohmann::ordered_json& variables, const TemplateLimits& limits);
  ~TemplateRenderer();
  TemplateRenderer(const TemplateRenderer&) = delete;
  TemplateRenderer& operator=(const TemplateRenderer&) = delete;

  std::string run(const Block& block);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  struct Captured {
    std::string text;
    Flow flow = Flow::kNormal;  // a block that a loop's control leaves has no use for its text
  };

  Flow exec(const Block& block, const ScopePtr& scope);
  Flow exec_one(const TemplateStatement& statement, const ScopePtr& scope);
  Flow exec_if(const TemplateStatement& statement, const ScopePtr& scope);
  void exec_for(const TemplateStatement& statement, const ScopePtr& scope);
  Flow exec_with(const TemplateStatement& statement, const ScopePtr& scope);
  void exec_call_block(const TemplateStatement& statement, const ScopePtr& scope);
  Captured capture(const Block& block, const ScopePtr& scope);
  void assign(const AssignTarget& target, TemplateValue value, const ScopePtr& scope);
  TemplateValue make_macro(const TemplateStatement& statement, const std::string& name,
                           const ScopePtr& scope);
  TemplateValue call_macro(const TemplateStatement& statement, const std::string& name,
                           const ScopePtr& scope, const CallArguments& arguments);
  void emit(std::string_view text);

  TemplateEvaluator evaluator_;
  std::string* out_ = nullptr;
  std::vector<ScopePtr> macro_scopes_;  // which hold macros that hold them: emptied at the end
};

}  // namespace rl
