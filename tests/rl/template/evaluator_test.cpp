#include "rl/template/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/rl/template/failure_of.h"
#include "tests/rl/template/trees.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::constant;
using testing::shown;
using testing::template_failure;
using testing::tree;
using testing::variable;

class TemplateEvaluatorTest : public ::testing::Test {
 protected:
  std::string value_of(const ExprPtr& expr) {
    return shown(evaluator_.eval(*expr, evaluator_.root()));
  }
  std::string failure_of_value(const ExprPtr& expr) {
    return template_failure([&] { evaluator_.eval(*expr, evaluator_.root()); }).message();
  }
  static ExprPtr compare(std::vector<std::string> operators, ExprPtr a, ExprPtr b, ExprPtr c = {}) {
    ExprPtr node = c == nullptr
                       ? tree(ExprKind::kCompare, "", std::move(a), std::move(b))
                       : tree(ExprKind::kCompare, "", std::move(a), std::move(b), std::move(c));
    node->names = std::move(operators);
    return node;
  }
  // Fails when it is evaluated.
  static ExprPtr trap() { return tree(ExprKind::kCall, "", constant(1)); }

  TemplateEvaluator evaluator_{ordered_json{{"a", 1}, {"text", "h\u00e9llo"}, {"list", {1, 2, 3}}},
                               {}};
};

TEST_F(TemplateEvaluatorTest, NamesAreLookedUpFromTheInnermostScope) {
  const ScopePtr outer = inner_scope(evaluator_.root());
  const ScopePtr inner = inner_scope(outer);
  outer->set("a", TemplateValue(std::int64_t{2}));
  EXPECT_EQ(evaluator_.eval(*variable("a"), inner).as_int(), 2);
  EXPECT_EQ(evaluator_.eval(*variable("a"), evaluator_.root()).as_int(), 1);
  EXPECT_TRUE(evaluator_.eval(*variable("range"), inner).is_callable());
  outer->set("range", TemplateValue(std::int64_t{3}));
  EXPECT_EQ(evaluator_.eval(*variable("range"), inner).as_int(), 3) << "variables hide globals";
  EXPECT_EQ(value_of(variable("b")), "undefined: 'b' is undefined");
}

TEST_F(TemplateEvaluatorTest, EvaluatesNoMoreThanTheResultNeeds) {
  EXPECT_EQ(failure_of_value(trap()), "TypeError: 'int' object is not callable");
  EXPECT_EQ(value_of(tree(ExprKind::kOr, "", constant("x"), trap())), "'x'");
  EXPECT_EQ(value_of(tree(ExprKind::kOr, "", constant(0), constant(""))), "''");
  EXPECT_EQ(value_of(tree(ExprKind::kAnd, "", constant(0), trap())), "0");
  EXPECT_EQ(value_of(tree(ExprKind::kConditional, "", trap(), constant(0), constant(2))), "2");
  EXPECT_EQ(value_of(compare({"<", "<"}, constant(2), constant(1), trap())), "False");
}

TEST_F(TemplateEvaluatorTest, ComparisonsChainAndFollowPythonForNan) {
  EXPECT_EQ(value_of(compare({"<", "<="}, constant(1), constant(2), constant(2))), "True");
  EXPECT_EQ(value_of(compare({"<", "<"}, constant(1), constant(3), constant(2))), "False");
  EXPECT_EQ(value_of(compare({"not in"}, constant(4), variable("list"))), "True");
  for (const char* op : {"<", "<=", ">", ">=", "=="})
    EXPECT_EQ(value_of(compare({op}, constant(TemplateValue(std::nan(""))), constant(1))), "False")
        << op;
}

TEST_F(TemplateEvaluatorTest, SlicesClampTheirBounds) {
  const auto slice = [](const char* name, ExprPtr first, ExprPtr stop, ExprPtr step) {
    return tree(ExprKind::kSlice, "", variable(name), std::move(first), std::move(stop),
                std::move(step));
  };
  EXPECT_EQ(value_of(slice("list", constant(-99), constant(99), nullptr)), "[1, 2, 3]");
  EXPECT_EQ(value_of(slice("list", constant(-2), nullptr, nullptr)), "[2, 3]");
  EXPECT_EQ(value_of(slice("list", nullptr, nullptr, constant(-2))), "[3, 1]");
  EXPECT_EQ(value_of(slice("list", constant(99), constant(-99), constant(-1))), "[3, 2, 1]");
  EXPECT_EQ(value_of(slice("list", constant(2), constant(1), nullptr)), "[]");
  EXPECT_EQ(value_of(slice("list", nullptr, nullptr, constant(TemplateValue(INT64_MAX)))), "[1]");
  EXPECT_EQ(value_of(slice("text", constant(1), constant(3), nullptr)), "'\u00e9l'");
  EXPECT_EQ(failure_of_value(slice("list", nullptr, nullptr, constant(0))),
            "ValueError: slice step cannot be zero");
  EXPECT_EQ(failure_of_value(slice("list", constant("x"), nullptr, nullptr)),
            "TypeError: slice indices must be integers or None or have an __index__ method");
  EXPECT_EQ(failure_of_value(slice("a", nullptr, nullptr, nullptr)),
            "TypeError: 'int' object is not subscriptable");
}

TEST_F(TemplateEvaluatorTest, CallsGetTheirArgumentsUnpacked) {
  ExprPtr pairs = tree(ExprKind::kDict, "", constant("k"), constant(5));
  std::vector<Argument> given(4);
  given[0].value = constant(0);
  given[1] = {Argument::Form::kStar, "", variable("list")};
  given[2] = {Argument::Form::kKeyword, "n", constant(4)};
  given[3] = {Argument::Form::kDoubleStar, "", std::move(pairs)};
  const CallArguments arguments = evaluator_.eval_arguments(given, evaluator_.root());
  EXPECT_EQ(shown(arguments.positional), "[0, 1, 2, 3]");
  ASSERT_EQ(arguments.named.size(), 2u);
  EXPECT_EQ(arguments.named[0].first, "n");
  EXPECT_EQ(arguments.find_named("k")->as_int(), 5);
  given[3].value = variable("list");
  EXPECT_EQ(
      template_failure([&] { evaluator_.eval_arguments(given, evaluator_.root()); }).message(),
      "TypeError: argument after ** must be a mapping, not list");
}

TEST_F(TemplateEvaluatorTest, FailuresNameTheLineOfTheirExpression) {
  ExprPtr filter = tree(ExprKind::kFilter, "urlize", constant("x"));
  filter->line = 7;
  EXPECT_EQ(failure_of_value(filter), "line 7: the filter 'urlize' is not supported");
  ExprPtr test = tree(ExprKind::kTest, "prime", std::move(filter->parts[0]));
  test->line = 8;
  EXPECT_EQ(failure_of_value(test), "line 8: the test 'prime' is not supported");
}

TEST_F(TemplateEvaluatorTest, WhatCannotBeIteratedOrHashedIsATypeError) {
  EXPECT_EQ(shown(evaluator_.iterate(TemplateValue::text("h\u00e9"))), "['h', '\u00e9']");
  EXPECT_TRUE(evaluator_.iterate(TemplateValue::undefined("'x' is undefined")).empty());
  EXPECT_EQ(template_failure([&] { evaluator_.iterate(TemplateValue()); }).message(),
            "TypeError: 'NoneType' object is not iterable");
  EXPECT_EQ(failure_of_value(tree(ExprKind::kDict, "", variable("list"), constant(1))),
            "TypeError: unhashable type: 'list'");
  EXPECT_EQ(failure_of_value(tree(ExprKind::kNegative, "", variable("text"))),
            "TypeError: bad operand type for unary -: 'str'");
  EXPECT_EQ(value_of(tree(ExprKind::kNegative, "", constant(TemplateValue(INT64_MIN)))),
            "9223372036854775808");
}

TEST(TemplateEvaluatorLimits, EveryEvaluationIsAStep) {
  TemplateEvaluator evaluator(ordered_json::object(), {.steps_max = 3});
  const ExprPtr two = tree(ExprKind::kNot, "", constant(1));
  evaluator.eval(*two, evaluator.root());
  EXPECT_EQ(template_failure([&] { evaluator.eval(*two, evaluator.root()); }).message(),
            "rendering takes more than 3 steps");
  EXPECT_EQ(template_failure([] { TemplateEvaluator(ordered_json::array(), {}); }).message(),
            "TypeError: the variables of a template must be an object");
}

}  // namespace
}  // namespace rl
