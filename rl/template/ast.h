// The tree of a parsed template. Plain data: the parser makes it, the evaluator walks it, it does
// not change in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rl/template/value.h"

namespace rl {

struct TemplateExpr;
using ExprPtr = std::unique_ptr<TemplateExpr>;

enum class ExprKind {
  kConstant,    // value
  kName,        // text
  kList,        // parts
  kTuple,       // parts
  kDict,        // parts: key, value, key, value, ...
  kNot,         // parts[0]
  kNegative,    // parts[0]
  kPositive,    // parts[0]
  kAnd,         // parts[0], parts[1]
  kOr,          // parts[0], parts[1]
  kArithmetic,  // text: + - * / // % **; parts[0], parts[1]
  kConcat,      // ~: parts
  kCompare,     // parts[0] op parts[1] op parts[2] ...; operators in names: == != < <= > >= in "not
                // in"
  kConditional,  // parts[0] if parts[1] else parts[2] (may be null)
  kAttribute,    // parts[0].text
  kSubscript,    // parts[0][parts[1]]
  kSlice,        // parts[0][parts[1]:parts[2]:parts[3]], each bound may be null
  kCall,         // parts[0](arguments)
  kFilter,       // parts[0]|text(arguments); parts[0] is null in a filter block
  kTest,         // parts[0] is text(arguments)
};

struct Argument {
  enum class Form { kPositional, kKeyword, kStar, kDoubleStar };
  Form form = Form::kPositional;
  std::string name;  // of a keyword
  ExprPtr value;
};

struct TemplateExpr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  int height = 1;  // of the tree below, so that nothing recurses without bound
  std::string text;
  TemplateValue value;
  std::vector<ExprPtr> parts;
  std::vector<std::string> names;
  std::vector<Argument> arguments;
};

struct TemplateStatement;
using Block = std::vector<TemplateStatement>;

/// What an assignment writes to: a name, "namespace.attribute", or several targets to unpack into.
struct AssignTarget {
  std::string name;
  std::string attribute;  // not empty for namespace.attribute
  std::vector<AssignTarget> parts;
};

struct Parameter {
  std::string name;
  ExprPtr otherwise;  // default, may be null
};

enum class StatementKind {
  kText,         // text
  kOutput,       // expr
  kIf,           // branches: condition (null for else) and body
  kFor,          // target in expr if condition: body, else otherwise
  kSet,          // target = expr
  kSetBlock,     // target = body rendered, through the filter expr (may be null)
  kMacro,        // text(parameters): body
  kCallBlock,    // expr is the call; parameters and body make `caller`
  kFilterBlock,  // expr is a chain of filters over the rendered body
  kWith,         // assignments in branches' place: targets/values, then body
  kScope,        // body as it is ({% generation %})
  kBreak,
  kContinue,
};

struct Branch {
  ExprPtr condition;
  Block body;
};

struct TemplateStatement {
  StatementKind kind = StatementKind::kText;
  int line = 1;
  std::string text;
  ExprPtr expr;
  ExprPtr condition;
  AssignTarget target;
  std::vector<AssignTarget> targets;
  std::vector<ExprPtr> values;
  std::vector<Parameter> parameters;
  bool takes_varargs =
      false;  // a macro whose body names them takes any number of arguments, keywords, or a caller
  bool takes_kwargs = false;
  bool takes_caller = false;
  std::vector<Branch> branches;
  Block body;
  Block otherwise;
};

}  // namespace rl
