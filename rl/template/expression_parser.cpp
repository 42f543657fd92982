#include "rl/template/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "rl/template/failure.h"

namespace rl {
namespace {

constexpr int kHeightMax = 200;  // of an expression's tree: evaluating it recurses as deep

bool is_comparison(const TemplateToken& token) {
  for (const char* symbol : {"==", "!=", "<", "<=", ">", ">="}) {
    if (token.is_operator(symbol)) return true;
  }
  return false;
}

void check_height(int height, int line) {
  if (height > kHeightMax)
    fail_limit("line " + std::to_string(line) + ": an expression nested deeper than " +
               std::to_string(kHeightMax));
}

/// The height of a node above one of its children.
void raise_height(TemplateExpr& node, const TemplateExpr* child) {
  if (child != nullptr) node.height = std::max(node.height, child->height + 1);
  check_height(node.height, node.line);
}

}  // namespace

TemplateToken ExpressionParser::take() {
  const TemplateToken& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

const TemplateToken& ExpressionParser::peek_next() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

std::string ExpressionParser::expect_name() {
  if (peek().kind != TokenKind::kName)
    fail_syntax(peek().line, "expected a name, got '" + peek().text + "'");
  return take().text;
}

void ExpressionParser::expect_operator(std::string_view symbol) {
  if (!peek().is_operator(symbol))
    fail_syntax(peek().line, "expected '" + std::string(symbol) + "', got '" + peek().text + "'");
  take();
}

ExprPtr ExpressionParser::make(ExprKind kind, std::string text, std::vector<ExprPtr> parts) const {
  auto node = std::make_unique<TemplateExpr>();
  node->kind = kind;
  node->line = peek().line;
  node->text = std::move(text);
  node->parts = std::move(parts);
  for (const ExprPtr& part : node->parts) raise_height(*node, part.get());
  return node;
}

void ExpressionParser::attach(TemplateExpr& node, std::vector<Argument> list) const {
  for (const Argument& argument : list) raise_height(node, argument.value.get());
  node.arguments = std::move(list);
}

namespace {

template <class... Parts>
std::vector<ExprPtr> pack(Parts... parts) {
  std::vector<ExprPtr> list;
  (list.push_back(std::move(parts)), ...);
  return list;
}

}  // namespace

ExprPtr ExpressionParser::expression() {
  // What recurses on the way down comes through here or through logical_not and unary.
  check_height(++depth_, peek().line);
  ExprPtr node = conditional();
  --depth_;
  return node;
}

ExprPtr ExpressionParser::tuple_or_expression(bool with_conditional) {
  const auto item = [&] { return with_conditional ? expression() : logical_or(); };
  ExprPtr first = item();
  if (!peek().is_operator(",")) return first;
  std::vector<ExprPtr> parts = pack(std::move(first));
  while (peek().is_operator(",")) {
    take();
    const TokenKind kind = peek().kind;
    if (kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || peek().is_operator(")"))
      break;
    parts.push_back(item());
  }
  return make(ExprKind::kTuple, "", std::move(parts));
}

ExprPtr ExpressionParser::conditional() {
  ExprPtr node = logical_or();
  while (peek().is_name("if")) {
    take();
    ExprPtr condition = logical_or();
    ExprPtr otherwise;
    if (peek().is_name("else")) {
      take();
      otherwise = expression();
    }
    node = make(ExprKind::kConditional, "",
                pack(std::move(node), std::move(condition), std::move(otherwise)));
  }
  return node;
}

ExprPtr ExpressionParser::left_to_right(ExprPtr (ExpressionParser::*operand)(),
                                        std::initializer_list<std::string_view> symbols) {
  ExprPtr node = (this->*operand)();
  while (std::any_of(symbols.begin(), symbols.end(),
                     [&](std::string_view symbol) { return peek().is_operator(symbol); })) {
    std::string symbol = take().text;
    node =
        make(ExprKind::kArithmetic, std::move(symbol), pack(std::move(node), (this->*operand)()));
  }
  return node;
}

ExprPtr ExpressionParser::words(ExprPtr (ExpressionParser::*operand)(), std::string_view word,
                                ExprKind kind) {
  ExprPtr node = (this->*operand)();
  while (peek().is_name(word)) {
    take();
    node = make(kind, "", pack(std::move(node), (this->*operand)()));
  }
  return node;
}

ExprPtr ExpressionParser::logical_or() {
  return words(&ExpressionParser::logical_and, "or", ExprKind::kOr);
}

ExprPtr ExpressionParser::logical_and() {
  return words(&ExpressionParser::logical_not, "and", ExprKind::kAnd);
}

ExprPtr ExpressionParser::logical_not() {
  if (!peek().is_name("not")) return compare();
  check_height(++depth_, peek().line);
  take();
  ExprPtr node = make(ExprKind::kNot, "", pack(logical_not()));
  --depth_;
  return node;
}

ExprPtr ExpressionParser::compare() {
  ExprPtr first = sum();
  std::vector<ExprPtr> parts;
  std::vector<std::string> operators;
  while (true) {
    if (is_comparison(peek()) || peek().is_name("in")) {
      operators.push_back(take().text);
    } else if (peek().is_name("not") && peek_next().is_name("in")) {
      take();
      take();
      operators.emplace_back("not in");
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) return first;
  parts.insert(parts.begin(), std::move(first));
  ExprPtr node = make(ExprKind::kCompare, "", std::move(parts));
  node->names = std::move(operators);
  return node;
}

ExprPtr ExpressionParser::sum() { return left_to_right(&ExpressionParser::concat, {"+", "-"}); }

ExprPtr ExpressionParser::concat() {
  ExprPtr first = product();
  if (!peek().is_operator("~")) return first;
  std::vector<ExprPtr> parts = pack(std::move(first));
  while (peek().is_operator("~")) {
    take();
    parts.push_back(product());
  }
  return make(ExprKind::kConcat, "", std::move(parts));
}

ExprPtr ExpressionParser::product() {
  return left_to_right(&ExpressionParser::power, {"*", "/", "//", "%"});
}

ExprPtr ExpressionParser::power() { return left_to_right(&ExpressionParser::filtered, {"**"}); }

ExprPtr ExpressionParser::filtered() { return unary(/*with_filter=*/true); }

ExprPtr ExpressionParser::unary(bool with_filter) {
  ExprPtr node;
  if (peek().is_operator("-") || peek().is_operator("+")) {
    check_height(++depth_, peek().line);
    const bool negative = take().text == "-";
    node = make(negative ? ExprKind::kNegative : ExprKind::kPositive, "",
                pack(unary(/*with_filter=*/false)));
    --depth_;
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::number(const TemplateToken& token) const {
  ExprPtr node = make(ExprKind::kConstant, "", {});
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    if (std::from_chars(token.text.data(), end, value).ec != std::errc())
      value = std::strtod(token.text.c_str(), nullptr);  // too large: infinite; too small: 0
    node->value = TemplateValue(value);
  } else {
    if (token.text.find_first_not_of("0123456789") != std::string::npos)
      fail_unsupported(token.line, "the number " + token.text + " beyond 64 bits");
    node->value = TemplateValue::integer(token.text);
  }
  return node;
}

ExprPtr ExpressionParser::primary() {
  const TemplateToken token = peek();
  switch (token.kind) {
    case TokenKind::kName: {
      take();
      const std::string& name = token.text;
      if (name == "true" || name == "True" || name == "false" || name == "False" ||
          name == "none" || name == "None") {
        ExprPtr node = make(ExprKind::kConstant, "", {});
        if (name != "none" && name != "None")
          node->value = TemplateValue(name == "true" || name == "True");
        return node;
      }
      if (name == "varargs" || name == "kwargs" || name == "caller") mentioned_.insert(name);
      return make(ExprKind::kName, name, {});
    }
    case TokenKind::kString: {
      std::string text;
      while (peek().kind == TokenKind::kString) text += take().text;  // neighbours are one string
      ExprPtr node = make(ExprKind::kConstant, "", {});
      node->value = TemplateValue(std::move(text));
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: take(); return number(token);
    case TokenKind::kOperator:
      if (token.text == "(") return parenthesised();
      if (token.text == "[") return list_literal();
      if (token.text == "{") return dict_literal();
      break;
    default: break;
  }
  fail_syntax(token.line,
              token.text.empty() ? "an expression is missing" : "unexpected '" + token.text + "'");
}

ExprPtr ExpressionParser::parenthesised() {
  take();
  if (peek().is_operator(")")) {
    take();
    return make(ExprKind::kTuple, "", {});
  }
  ExprPtr node = tuple_or_expression();
  expect_operator(")");
  return node;
}

template <class Item>
void ExpressionParser::items(std::string_view begin, std::string_view end, const Item& item) {
  expect_operator(begin);
  for (bool first = true; !peek().is_operator(end); first = false) {
    if (!first) expect_operator(",");
    if (peek().is_operator(end)) break;
    item();
  }
  take();
}

ExprPtr ExpressionParser::list_literal() {
  std::vector<ExprPtr> parts;
  items("[", "]", [&] { parts.push_back(expression()); });
  return make(ExprKind::kList, "", std::move(parts));
}

ExprPtr ExpressionParser::dict_literal() {
  std::vector<ExprPtr> parts;
  items("{", "}", [&] {
    parts.push_back(expression());
    expect_operator(":");
    parts.push_back(expression());
  });
  return make(ExprKind::kDict, "", std::move(parts));
}

ExprPtr ExpressionParser::postfix(ExprPtr node) {
  while (true) {
    if (peek().is_operator(".")) {
      take();
      const TemplateToken name = take();
      if (name.kind == TokenKind::kName) {
        node = make(ExprKind::kAttribute, name.text, pack(std::move(node)));
      } else if (name.kind == TokenKind::kInteger) {
        node = make(ExprKind::kSubscript, "", pack(std::move(node), number(name)));
      } else {
        fail_syntax(name.line, "expected a name after '.'");
      }
    } else if (peek().is_operator("[")) {
      node = subscript(std::move(node));
    } else if (peek().is_operator("(")) {
      std::vector<Argument> call_arguments = arguments();
      node = make(ExprKind::kCall, "", pack(std::move(node)));
      attach(*node, std::move(call_arguments));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr node) {
  take();
  const auto bound = [&]() -> ExprPtr {
    return peek().is_operator(":") || peek().is_operator("]") ? nullptr : expression();
  };
  ExprPtr first = bound();
  if (!peek().is_operator(":")) {
    if (first == nullptr) fail_syntax(peek().line, "an index is missing");
    if (peek().is_operator(",")) fail_unsupported(peek().line, "an index of several parts");
    expect_operator("]");
    return make(ExprKind::kSubscript, "", pack(std::move(node), std::move(first)));
  }
  take();
  ExprPtr stop = bound();
  ExprPtr step;
  if (peek().is_operator(":")) {
    take();
    step = bound();
  }
  expect_operator("]");
  return make(ExprKind::kSlice, "",
              pack(std::move(node), std::move(first), std::move(stop), std::move(step)));
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr node) {
  while (true) {
    if (peek().is_operator("|")) {
      take();
      node = filter(std::move(node));
    } else if (peek().is_name("is")) {
      take();
      node = test(std::move(node));
    } else if (peek().is_operator("(")) {
      std::vector<Argument> call_arguments = arguments();
      node = make(ExprKind::kCall, "", pack(std::move(node)));
      attach(*node, std::move(call_arguments));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::filter(ExprPtr node) {
  const int line = peek().line;
  std::string name = expect_name();
  while (peek().is_operator(".")) {
    take();
    name += "." + expect_name();
  }
  ExprPtr made = make(ExprKind::kFilter, std::move(name), pack(std::move(node)));
  made->line = line;
  if (peek().is_operator("(")) attach(*made, arguments());
  return made;
}

ExprPtr ExpressionParser::filter_chain(bool first_bar) {
  if (first_bar) expect_operator("|");
  ExprPtr node = filter(nullptr);
  while (peek().is_operator("|")) {
    take();
    node = filter(std::move(node));
  }
  return node;
}

ExprPtr ExpressionParser::test(ExprPtr node) {
  const int line = peek().line;
  bool negated = false;
  if (peek().is_name("not")) {
    take();
    negated = true;
  }
  ExprPtr made = make(ExprKind::kTest, expect_name(), pack(std::move(node)));
  made->line = line;
  const TokenKind kind = peek().kind;
  const bool starts_argument = kind == TokenKind::kName || kind == TokenKind::kString ||
                               kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
                               peek().is_operator("[") || peek().is_operator("{");
  const bool is_keyword = peek().is_name("else") || peek().is_name("or") || peek().is_name("and");
  if (peek().is_operator("(")) {
    attach(*made, arguments());
  } else if (starts_argument && !is_keyword) {
    if (peek().is_name("is")) fail_syntax(peek().line, "tests cannot be chained with 'is'");
    std::vector<Argument> single(1);
    single[0].value = postfix(primary());
    attach(*made, std::move(single));
  }
  if (!negated) return made;
  return make(ExprKind::kNot, "", pack(std::move(made)));
}

std::vector<Argument> ExpressionParser::arguments() {
  std::vector<Argument> list;
  bool named = false;
  items("(", ")", [&] {
    Argument argument;
    if (peek().is_operator("*") || peek().is_operator("**")) {
      argument.form = take().text == "*" ? Argument::Form::kStar : Argument::Form::kDoubleStar;
    } else if (peek().kind == TokenKind::kName && peek_next().is_operator("=")) {
      argument.form = Argument::Form::kKeyword;
      argument.name = take().text;
      take();
    } else if (named) {
      fail_syntax(peek().line, "a positional argument follows a named one");
    }
    named = named || argument.form == Argument::Form::kKeyword ||
            argument.form == Argument::Form::kDoubleStar;
    argument.value = expression();
    list.push_back(std::move(argument));
  });
  return list;
}

}  // namespace rl
