// Expressions of the template language, by recursive descent in Jinja2's order of precedence.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rl/template/ast.h"
#include "rl/template/lexer.h"

namespace rl {

/// Reads from a place in a list of tokens that outlives it. Throws TemplateFailure. One private
/// function for each rule of the grammar, hence their number.
class ExpressionParser {
 public:
  explicit ExpressionParser(const std::vector<TemplateToken>& tokens) : tokens_(tokens) {}

  const TemplateToken& peek() const { return tokens_[at_]; }
  TemplateToken take();
  std::string expect_name();
  void expect_operator(std::string_view symbol);

  /// One expression, "a if b else c" included.
  ExprPtr expression();
  /// The same, or "a, b" as a tuple. Without `conditional` an "if" ends it.
  ExprPtr tuple_or_expression(bool conditional = true);
  /// "|a|b(1)" over a value to come (the innermost parts[0] is null).
  ExprPtr filter_chain(bool first_bar = true);

  /// Which of varargs, kwargs and caller have been named so far; the caller's to reset.
  std::set<std::string>& mentioned() { return mentioned_; }

 private:
  const TemplateToken& peek_next() const;
  ExprPtr make(ExprKind kind, std::string text, std::vector<ExprPtr> parts) const;
  void attach(TemplateExpr& node, std::vector<Argument> list) const;
  /// Operands with those operators between them: "a - b + c" is "(a - b) + c".
  ExprPtr left_to_right(ExprPtr (ExpressionParser::*operand)(),
                        std::initializer_list<std::string_view> symbols);
  /// The same with a word.
  ExprPtr words(ExprPtr (ExpressionParser::*operand)(), std::string_view word, ExprKind kind);
  /// Items with commas between them, and perhaps one behind, in brackets.
  template <class Item>
  void items(std::string_view begin, std::string_view end, const Item& item);
  ExprPtr conditional();
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr compare();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr filtered();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr parenthesised();
  ExprPtr list_literal();
  ExprPtr dict_literal();
  ExprPtr postfix(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr filter(ExprPtr node);
  ExprPtr test(ExprPtr node);
  std::vector<Argument> arguments();
  ExprPtr number(const TemplateToken& token) const;

  const std::vector<TemplateToken>& tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::set<std::string> mentioned_;
};

}  // namespace rl
