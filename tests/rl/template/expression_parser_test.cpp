#include "rl/template/expression_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/template/failure_of.h"
#include "tests/rl/template/trees.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::shown;
using testing::template_failure;

// Calls `parse` with a parser that stands in front of the text.
template <class Parse>
auto parsed_by(const std::string& text, const Parse& parse) {
  const std::vector<TemplateToken> tokens = lex_template("{{ " + text + " }}");
  ExpressionParser parser(tokens);
  parser.take();
  return parse(parser);
}

// The tree of an expression that is all of the text.
std::string tree_of(const std::string& text) {
  return parsed_by(text, [](ExpressionParser& parser) {
    const std::string tree = shown(parser.expression());
    EXPECT_EQ(parser.peek().kind, TokenKind::kVariableEnd) << tree;
    return tree;
  });
}

TEST(ExpressionParser, BindsAsJinjaDoes) {
  EXPECT_EQ(tree_of("a or b and not c == d + e ~ f * g ** h|i"),
            "(or a (and b (not (== c (+ d (~ e (* f (** g (filter i h)))))))))");
  EXPECT_EQ(tree_of("a - b - c // d % e"), "(- (- a b) (% (// c d) e))");
  EXPECT_EQ(tree_of("2 ** 3 ** 4"), "(** (** 2 3) 4)") << "from the left, unlike Python";
  EXPECT_EQ(tree_of("-a.b ** 2"), "(** (neg (. b a)) 2)");
  EXPECT_EQ(tree_of("-a|abs"), "(filter abs (neg a))");
  EXPECT_EQ(tree_of("a < b <= c not in d"), "(< <= not in a b c d)");
  EXPECT_EQ(tree_of("not a in b"), "(not (in a b))");
}

TEST(ExpressionParser, ConditionalsChainThroughElse) {
  EXPECT_EQ(tree_of("a if b else c if d else e"), "(if a b (if c d e))");
  EXPECT_EQ(tree_of("a if b"), "(if a b -)");
  EXPECT_EQ(tree_of("a or b if c"), "(if (or a b) c -)");
}

TEST(ExpressionParser, ReadsWhatStandsBehindAValue) {
  EXPECT_EQ(tree_of("a.b[0](c, k=1, *d, **e).0"),
            "(index (call (index (. b a) 0), c, k=1, *d, **e) 0)");
  EXPECT_EQ(tree_of("a[1:][:b][::-1]"), "(slice (slice (slice a 1 - -) - b -) - - (neg 1))");
  EXPECT_EQ(tree_of("a|f(1)|g.h is k"), "(is k (filter g.h (filter f a, 1)))");
  EXPECT_EQ(tree_of("'a' 'b'"), "'ab'");
  EXPECT_EQ(tree_of("[1, {'a': (), 'b': (2,)},]"), "(list 1 (dict 'a' (tuple) 'b' (tuple 2)))");
}

TEST(ExpressionParser, TestsTakeOneArgumentWithoutBrackets) {
  EXPECT_EQ(tree_of("a is divisibleby 3 and b"), "(and (is divisibleby a, 3) b)");
  EXPECT_EQ(tree_of("a is defined and b"), "(and (is defined a) b)") << "no argument";
  EXPECT_EQ(tree_of("a is not eq b.c"), "(not (is eq a, (. c b)))");
  EXPECT_EQ(tree_of("a is in [1]"), "(is in a, (list 1))");
}

TEST(ExpressionParser, StopsWhereItsCallerAsksForIt) {
  const auto tuple = [](const std::string& text, bool conditional) {
    return parsed_by(text, [&](ExpressionParser& parser) {
      const std::string tree = shown(parser.tuple_or_expression(conditional));
      return tree + " before '" + parser.peek().text + "'";
    });
  };
  EXPECT_EQ(tuple("a, b if c,", true), "(tuple a (if b c -)) before ''");
  EXPECT_EQ(tuple("a, b if c", false), "(tuple a b) before 'if'");
  EXPECT_EQ(tuple("a", true), "a before ''");
  EXPECT_EQ(
      parsed_by("|f|g(1)", [](ExpressionParser& parser) { return shown(parser.filter_chain()); }),
      "(filter g (filter f -), 1)");
}

TEST(ExpressionParser, CollectsTheNamesThatDecideWhatAMacroTakes) {
  EXPECT_EQ(parsed_by("[varargs, x.kwargs, caller()]",
                      [](ExpressionParser& parser) {
                        parser.expression();
                        return parser.mentioned();
                      }),
            (std::set<std::string>{"caller", "varargs"}));
}

TEST(ExpressionParser, ErrorsNameTheLine) {
  const auto failure = [](const std::string& text) {
    return template_failure([&] {
             parsed_by("\n" + text, [](ExpressionParser& parser) { parser.expression(); });
           })
        .to_string();
  };
  EXPECT_EQ(failure("f(a=1, 2)"),
            "invalid argument: line 2: a positional argument follows a named one");
  EXPECT_EQ(failure("a is b is c"), "invalid argument: line 2: tests cannot be chained with 'is'");
  EXPECT_EQ(failure("a[]"), "invalid argument: line 2: an index is missing");
  EXPECT_EQ(failure("a[1, 2]"),
            "unimplemented: line 2: an index of several parts is not supported");
  EXPECT_EQ(failure("a.'b'"), "invalid argument: line 2: expected a name after '.'");
  EXPECT_EQ(failure("{1 2}"), "invalid argument: line 2: expected ':', got '2'");
  EXPECT_EQ(failure("1 +"), "invalid argument: line 2: an expression is missing");
}

TEST(ExpressionParser, RefusesWhatNestsTooDeeply) {
  const auto code = [](const std::string& text) {
    return template_failure([&] { tree_of(text); }).code();
  };
  std::string sum = "1";
  for (int i = 0; i < 199; ++i) sum += "+1";
  EXPECT_EQ(code(sum), ErrorCode::kOk);
  EXPECT_EQ(code(sum + "+1"), ErrorCode::kResourceExhausted);
  const auto repeated = [](const std::string& part) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += part;
    return text;
  };
  for (const auto& [opening, closing] : std::vector<std::pair<std::string, std::string>>{
           {"(", ")"}, {"[", "]"}, {"f(", ")"}, {"{1:", "}"}, {"-", ""}, {"not ", ""}})
    EXPECT_EQ(code(repeated(opening) + "1" + repeated(closing)), ErrorCode::kResourceExhausted)
        << opening;
}

}  // namespace
}  // namespace rl
