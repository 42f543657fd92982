#include "rl/template/parser.h"

#include <algorithm>
#include <set>

#include "rl/template/expression_parser.h"
#include "rl/template/failure.h"
#include "rl/template/lexer.h"

namespace rl {
namespace {

constexpr int kNestingMax = 100;

class Parser {
 public:
  explicit Parser(std::vector<TemplateToken> tokens)
      : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Block parse_all() {
    Block block = body({});
    if (peek().kind != TokenKind::kEnd)
      fail_syntax(peek().line, "unexpected tag '" + peek().text + "'");
    return block;
  }

 private:
  using Ends = std::set<std::string>;

  const TemplateToken& peek() const { return expressions_.peek(); }
  TemplateToken take() { return expressions_.take(); }
  void expect_block_end() {
    if (peek().kind != TokenKind::kBlockEnd)
      fail_syntax(peek().line, "expected the end of the tag, got '" + peek().text + "'");
    take();
  }

  /// Statements up to a tag named in `ends`, whose name is the next token then; or up to the end of
  /// the source.
  Block body(const Ends& ends) {
    if (++nesting_ > kNestingMax)
      fail_limit("tags nested deeper than " + std::to_string(kNestingMax));
    Block block;
    while (peek().kind != TokenKind::kEnd) {
      const TemplateToken token = take();
      TemplateStatement statement;
      statement.line = token.line;
      if (token.kind == TokenKind::kText) {
        statement.text = token.text;
      } else if (token.kind == TokenKind::kVariableBegin) {
        statement.kind = StatementKind::kOutput;
        statement.expr = expressions_.tuple_or_expression();
        if (peek().kind != TokenKind::kVariableEnd)
          fail_syntax(peek().line, "expected '}}', got '" + peek().text + "'");
        take();
      } else {
        if (peek().kind != TokenKind::kName)
          fail_syntax(peek().line, "a tag must begin with a name");
        if (ends.contains(peek().text)) {
          --nesting_;
          return block;
        }
        tag(statement, ends);
      }
      block.push_back(std::move(statement));
    }
    if (!ends.empty())
      fail_syntax(peek().line, "the template ends where '" + *ends.rbegin() + "' is expected");
    --nesting_;
    return block;
  }

  /// A body and the closing tag behind it.
  Block body_until(const std::string& end) {
    expect_block_end();
    Block block = body({end});
    take();
    return block;
  }

  void tag(TemplateStatement& statement, const Ends& ends) {
    const TemplateToken name = take();
    const std::string& word = name.text;
    if (word == "if") return if_tag(statement);
    if (word == "for") return for_tag(statement);
    if (word == "set") return set_tag(statement);
    if (word == "macro") return macro_tag(statement);
    if (word == "call") return call_tag(statement);
    if (word == "filter") return filter_tag(statement);
    if (word == "with") return with_tag(statement);
    if (word == "generation") {
      statement.kind = StatementKind::kScope;
      statement.body = body_until("endgeneration");
      return expect_block_end();
    }
    if (word == "break" || word == "continue") {
      if (loop_depth_ == 0) fail_syntax(name.line, "'" + word + "' outside of a loop");
      statement.kind = word == "break" ? StatementKind::kBreak : StatementKind::kContinue;
      return expect_block_end();
    }
    static const Ends unsupported = {"include",    "import", "from",  "extends", "block",
                                     "autoescape", "do",     "trans", "debug",   "print"};
    if (unsupported.contains(word)) fail_unsupported(name.line, "the tag '" + word + "'");
    std::string message = "unknown tag '" + word + "'";
    if (!ends.empty()) message += "; the innermost open tag needs '" + *ends.rbegin() + "'";
    fail_syntax(name.line, message);
  }

  void if_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kIf;
    statement.branches.push_back({expressions_.tuple_or_expression(/*conditional=*/false), {}});
    while (true) {
      expect_block_end();
      const bool is_else = statement.branches.back().condition == nullptr;
      statement.branches.back().body =
          body(is_else ? Ends{"endif"} : Ends{"endif", "elif", "else"});
      const TemplateToken word = take();
      if (word.text == "endif") return expect_block_end();
      statement.branches.push_back(
          {word.text == "elif" ? expressions_.tuple_or_expression(false) : nullptr, {}});
    }
  }

  void for_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kFor;
    statement.target = target(false);
    if (!peek().is_name("in")) fail_syntax(peek().line, "expected 'in', got '" + peek().text + "'");
    take();
    statement.expr = expressions_.tuple_or_expression(/*conditional=*/false);
    if (peek().is_name("if")) {
      take();
      statement.condition = expressions_.expression();
    }
    if (peek().is_name("recursive")) fail_unsupported(peek().line, "a recursive loop");
    expect_block_end();
    ++loop_depth_;
    statement.body = body({"endfor", "else"});
    --loop_depth_;
    if (take().text == "else") {
      expect_block_end();
      statement.otherwise = body({"endfor"});
      take();
    }
    expect_block_end();
  }

  void set_tag(TemplateStatement& statement) {
    statement.target = target(true);
    if (peek().is_operator("=")) {
      take();
      statement.kind = StatementKind::kSet;
      statement.expr = expressions_.tuple_or_expression();
      return expect_block_end();
    }
    statement.kind = StatementKind::kSetBlock;
    if (peek().is_operator("|")) statement.expr = expressions_.filter_chain();
    statement.body = body_until("endset");
    expect_block_end();
  }

  void macro_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kMacro;
    statement.text = expressions_.expect_name();
    statement.parameters = parameters();
    const int outer_loops = std::exchange(loop_depth_, 0);  // a macro in a loop is not in the loop
    macro_body(statement, "endmacro");
    loop_depth_ = outer_loops;
    expect_block_end();
  }

  // What the body of a macro mentions decides what the macro takes besides its parameters.
  void macro_body(TemplateStatement& statement, const char* end) {
    std::set<std::string> outer = std::exchange(expressions_.mentioned(), {});
    statement.body = body_until(end);
    std::set<std::string>& inner = expressions_.mentioned();
    statement.takes_varargs = inner.contains("varargs");
    statement.takes_kwargs = inner.contains("kwargs");
    statement.takes_caller = inner.contains("caller");
    inner.merge(outer);
  }

  void call_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kCallBlock;
    if (peek().is_operator("(")) statement.parameters = parameters();
    statement.expr = expressions_.expression();
    if (statement.expr->kind != ExprKind::kCall) fail_syntax(statement.line, "'call' needs a call");
    const int outer_loops = std::exchange(loop_depth_, 0);
    macro_body(statement, "endcall");
    loop_depth_ = outer_loops;
    expect_block_end();
  }

  void filter_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kFilterBlock;
    statement.expr = expressions_.filter_chain(/*first_bar=*/false);
    statement.body = body_until("endfilter");
    expect_block_end();
  }

  void with_tag(TemplateStatement& statement) {
    statement.kind = StatementKind::kWith;
    while (peek().kind != TokenKind::kBlockEnd) {
      if (!statement.targets.empty()) expressions_.expect_operator(",");
      statement.targets.push_back(single_target(false));
      expressions_.expect_operator("=");
      statement.values.push_back(expressions_.expression());
    }
    statement.body = body_until("endwith");
    expect_block_end();
  }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> parameters;
    expressions_.expect_operator("(");
    while (!peek().is_operator(")")) {
      if (!parameters.empty()) expressions_.expect_operator(",");
      if (peek().is_operator(")")) break;
      Parameter parameter;
      parameter.name = expressions_.expect_name();
      if (peek().is_operator("=")) {
        take();
        parameter.otherwise = expressions_.expression();
      } else if (!parameters.empty() && parameters.back().otherwise != nullptr) {
        fail_syntax(peek().line, "the parameter '" + parameter.name +
                                     "' without a default follows one with a default");
      }
      parameters.push_back(std::move(parameter));
    }
    take();
    return parameters;
  }

  AssignTarget single_target(bool allow_attribute) {
    AssignTarget result;
    if (peek().is_operator("(")) {
      if (++nesting_ > kNestingMax) fail_limit("targets nested too deeply");
      take();
      result = target(false);
      expressions_.expect_operator(")");
      --nesting_;
      return result;
    }
    result.name = expressions_.expect_name();
    static const Ends constants = {"true", "false", "none", "True", "False", "None"};
    if (constants.contains(result.name))
      fail_syntax(peek().line, "cannot assign to '" + result.name + "'");
    if (allow_attribute && peek().is_operator(".")) {
      take();
      result.attribute = expressions_.expect_name();
    }
    return result;
  }

  AssignTarget target(bool allow_attribute) {
    AssignTarget first = single_target(allow_attribute);
    if (!peek().is_operator(",")) return first;
    AssignTarget several;
    several.parts.push_back(std::move(first));
    while (peek().is_operator(",")) {
      take();
      if (peek().kind != TokenKind::kName && !peek().is_operator("(")) break;  // a trailing comma
      if (peek().is_name("in")) break;
      several.parts.push_back(single_target(allow_attribute));
    }
    return several;
  }

  std::vector<TemplateToken> tokens_;
  ExpressionParser expressions_;  // holds the place in tokens_
  int nesting_ = 0;
  int loop_depth_ = 0;
};

}  // namespace

Block parse_template(std::string_view source) { return Parser(lex_template(source)).parse_all(); }

}  // namespace rl
