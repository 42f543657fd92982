#include "rl/template/parser.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/rl/template/failure_of.h"
#include "tests/rl/template/trees.h"

namespace rl {
namespace {

using runtime::ErrorCode;
using testing::shown;
using testing::template_failure;

std::string parse_failure(const std::string& source) {
  return template_failure([&] { parse_template(source); }).to_string();
}

TEST(TemplateParser, BranchesKeepTheirOrder) {
  const Block block = parse_template("{% if a, b %}1{% elif c %}2{% else %}3{% endif %}4");
  ASSERT_EQ(block.size(), 2u);
  EXPECT_EQ(block[1].text, "4");
  const auto& branches = block[0].branches;
  ASSERT_EQ(branches.size(), 3u);
  EXPECT_EQ(shown(branches[0].condition), "(tuple a b)");
  EXPECT_EQ(shown(branches[1].condition), "c");
  EXPECT_EQ(branches[2].condition, nullptr);
  EXPECT_EQ(branches[2].body.at(0).text, "3");
  EXPECT_EQ(parse_failure("{% if a %}{% else %}{% elif b %}{% endif %}"),
            "invalid argument: line 1: unknown tag 'elif'; the innermost open tag needs 'endif'");
}

TEST(TemplateParser, LoopsHaveATargetAConditionAndAnElse) {
  const Block block =
      parse_template("{% for (k, v), w in x if k %}{% break %}{% else %}none{% endfor %}");
  const TemplateStatement& loop = block.at(0);
  ASSERT_EQ(loop.target.parts.size(), 2u);
  EXPECT_EQ(loop.target.parts[0].parts.at(1).name, "v");
  EXPECT_EQ(loop.target.parts[1].name, "w");
  EXPECT_EQ(shown(loop.expr), "x");
  EXPECT_EQ(shown(loop.condition), "k");
  EXPECT_EQ(loop.body.at(0).kind, StatementKind::kBreak);
  EXPECT_EQ(loop.otherwise.at(0).text, "none");
}

TEST(TemplateParser, OnlyLoopsAreLeft) {
  const std::string outside = "invalid argument: line 1: 'break' outside of a loop";
  EXPECT_EQ(parse_failure("{% break %}"), outside);
  EXPECT_EQ(parse_failure("{% for a in b %}{% else %}{% break %}{% endfor %}"), outside);
  EXPECT_EQ(parse_failure("{% for a in b %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}"),
            outside);
  EXPECT_EQ(
      parse_failure("{% for a in b %}{% macro f() %}{% endmacro %}{% if a %}{% break %}{% endif %}"
                    "{% endfor %}"),
      "ok");
}

TEST(TemplateParser, MacrosTakeWhatTheirBodiesMention) {
  const Block block = parse_template(
      "{% macro f(a, b=1) %}{{ varargs }}{% endmacro %}"
      "{% macro g() %}{% macro h() %}{{ kwargs }}{{ caller() }}{% endmacro %}{% endmacro %}"
      "{% call(x) g() %}{% endcall %}");
  const auto takes = [](const TemplateStatement& macro) {
    return std::string(macro.takes_varargs ? "v" : "") + (macro.takes_kwargs ? "k" : "") +
           (macro.takes_caller ? "c" : "");
  };
  EXPECT_EQ(takes(block.at(0)), "v");
  EXPECT_EQ(takes(block.at(1)), "kc") << "also through a macro inside";
  EXPECT_EQ(takes(block.at(2)), "");
  ASSERT_EQ(block[0].parameters.size(), 2u);
  EXPECT_EQ(block[0].parameters[0].otherwise, nullptr);
  EXPECT_EQ(shown(block[0].parameters[1].otherwise), "1");
  EXPECT_EQ(block[2].parameters.at(0).name, "x");
  EXPECT_EQ(parse_failure("{% macro f(a=1, b) %}{% endmacro %}"),
            "invalid argument: line 1: the parameter 'b' without a default follows one with a "
            "default");
}

TEST(TemplateParser, AssignsToNamesAndAttributesOfNamespaces) {
  const Block block = parse_template(
      "{% set ns.a, b = 1, 2 %}{% set c | upper | trim %}x{% endset %}{% with d = 1, e = d %}"
      "{% endwith %}");
  EXPECT_EQ(block.at(0).target.parts.at(0).attribute, "a");
  EXPECT_EQ(block[0].target.parts.at(1).name, "b");
  EXPECT_EQ(shown(block[0].expr), "(tuple 1 2)");
  EXPECT_EQ(block.at(1).kind, StatementKind::kSetBlock);
  EXPECT_EQ(shown(block[1].expr), "(filter trim (filter upper -))");
  EXPECT_EQ(block.at(2).targets.at(1).name, "e");
  EXPECT_EQ(shown(block[2].values.at(1)), "d");
  EXPECT_EQ(parse_failure("{% set true = 1 %}"),
            "invalid argument: line 1: cannot assign to 'true'");
  EXPECT_EQ(parse_failure("{% for ns.a in b %}{% endfor %}"),
            "invalid argument: line 1: expected 'in', got '.'");
}

TEST(TemplateParser, ErrorsNameTheTagAndItsLine) {
  EXPECT_EQ(parse_failure("\n{% endif %}"), "invalid argument: line 2: unknown tag 'endif'");
  EXPECT_EQ(parse_failure("\n{{ a b }}"), "invalid argument: line 2: expected '}}', got 'b'");
  EXPECT_EQ(parse_failure("\n{% if a b %}"),
            "invalid argument: line 2: expected the end of the tag, got 'b'");
  EXPECT_EQ(parse_failure("\n{% 1 %}"), "invalid argument: line 2: a tag must begin with a name");
  EXPECT_EQ(parse_failure("\n{% call f %}{% endcall %}"),
            "invalid argument: line 2: 'call' needs a call");
  EXPECT_EQ(parse_failure("\n{% import 'x' %}"),
            "unimplemented: line 2: the tag 'import' is not supported");
}

TEST(TemplateParser, TagsNestUpToALimit) {
  const auto nested = [](int depth) {
    std::string begin, end;
    for (int i = 0; i < depth; ++i) begin += "{% if a %}", end += "{% endif %}";
    return template_failure([&] { parse_template(begin + end); }).code();
  };
  EXPECT_EQ(nested(99), ErrorCode::kOk);
  EXPECT_EQ(nested(100), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace rl
