#include "rl/template/renderer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "rl/template/parser.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

std::string run_template(const std::string& source, const TemplateLimits& limits = {}) {
  const Block block = parse_template(source);
  return TemplateRenderer(ordered_json{{"list", {1, 2, 3}}}, limits).run(block);
}

std::string run_failure(const std::string& source) {
  return template_failure([&] { run_template(source); }).message();
}

TEST(TemplateRenderer, WhatARoundSetsIsGoneInTheNext) {
  EXPECT_EQ(run_template("{% set a = 0 %}{% for i in list %}{{ a }}{% set a = i %}{{ a }}"
                         "{% endfor %}{{ a }}"),
            "0102030");
  EXPECT_EQ(run_template("{% set n = namespace(a=0) %}{% for i in list %}{% set n.a = n.a + i %}"
                         "{% endfor %}{{ n.a }}"),
            "6");
  EXPECT_EQ(run_template("{% if 1 %}{% set a = 1 %}{% endif %}{{ a }}"), "1")
      << "an if is no scope";
  EXPECT_EQ(run_template("{% with a = 1, b = a %}{{ a }}{{ b is defined }}{% endwith %}{{ a }}"),
            "1False")
      << "the values of a with see the outside";
}

TEST(TemplateRenderer, LoopControlsLeaveTheInnermostLoop) {
  EXPECT_EQ(run_template("{% for i in list %}{% for j in list %}{% if j == 2 %}{% break %}"
                         "{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}"),
            "11 21 31 ");
}

TEST(TemplateRenderer, LoopControlsLeaveTheBlocksInTheLoop) {
  EXPECT_EQ(run_template("{% for i in list %}{% with a = i %}{{ a }}{% if a == 2 %}{% break %}"
                         "{% endif %}{% endwith %};{% endfor %}"),
            "1;2");
  EXPECT_EQ(run_template("{% for i in list %}<{% filter upper %}a{% if i == 2 %}{% continue %}"
                         "{% endif %}{% endfilter %}{{ i }}>{% endfor %}"),
            "<A1><<A3>");
  EXPECT_EQ(run_template("{% for i in list %}{% set a %}b{% break %}{% endset %}{{ i }}"
                         "{% endfor %}|{{ a }}"),
            "|");
}

TEST(TemplateRenderer, ConditionsFilterALoopBeforeItCounts) {
  EXPECT_EQ(run_template("{% for i in list if i != 2 %}{{ loop.index }}/{{ loop.length }}:{{ i }} "
                         "{% else %}none{% endfor %}"),
            "1/2:1 2/2:3 ");
  EXPECT_EQ(run_template("{% for i in list if i > 3 %}{{ i }}{% else %}none{% endfor %}"), "none");
}

TEST(TemplateRenderer, CapturedTextGoesWhereItsTagSays) {
  EXPECT_EQ(run_template("a{% set b %}b{% filter upper %}c{{ 'd' }}{% endfilter %}{% endset %}e"
                         "{{ b }}"),
            "aebCD");
  EXPECT_EQ(run_template("{% macro f(x) %}<{{ caller(x + 1) }}>{% endmacro %}"
                         "{% call(y) f(1) %}{{ y }}{% endcall %}"),
            "<2>");
  EXPECT_EQ(run_failure("{% filter length %}a{% endfilter %}"),
            "TypeError: sequence item 0: expected str instance, int found");
}

TEST(TemplateRenderer, MacrosBindTheirArguments) {
  const std::string macro = "{% macro f(a, b=a ~ '!') %}[{{ a }}{{ b }}]{% endmacro %}";
  EXPECT_EQ(run_template(macro + "{{ f(1) }}{{ f(1, 2) }}{{ f(b=3) }}"), "[11!][12][3]");
  EXPECT_EQ(run_failure(macro + "{{ f(1, 2, 3) }}"),
            "TypeError: macro 'f' takes not more than 2 argument(s)");
  EXPECT_EQ(run_failure(macro + "{{ f(c=1) }}"),
            "TypeError: macro 'f' takes no keyword argument 'c'");
  EXPECT_EQ(run_template("{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}"
                         "{{ f(1, 2, 3, k=4) }}{{ f() }}"),
            "(2, 3){'k': 4}(){}");
}

TEST(TemplateRenderer, UnpackingNeedsAsManyValuesAsTargets) {
  EXPECT_EQ(run_template("{% set (a, b), c = ((1, 2), 'x') %}{{ a }}{{ b }}{{ c }}"), "12x");
  EXPECT_EQ(run_failure("{% set a, b = list %}"),
            "ValueError: too many values to unpack (expected 2)");
  EXPECT_EQ(run_failure("{% set a, b, c, d = list %}"),
            "ValueError: not enough values to unpack (expected 4, got 3)");
  EXPECT_EQ(run_failure("{% set a, b = 1 %}"), "TypeError: cannot unpack non-iterable int object");
  EXPECT_EQ(run_failure("{% set list.a = 1 %}"),
            "TemplateRuntimeError: cannot assign attribute on non-namespace object");
}

TEST(TemplateRenderer, OutputHasALimitWhereverItGoes) {
  const TemplateLimits limits{.output_bytes_max = 3};
  EXPECT_EQ(run_template("abc", limits), "abc");
  for (const char* source : {"ab{{ 'cd' }}", "{% set a %}abcd{% endset %}"})
    EXPECT_EQ(template_failure([&] { run_template(source, limits); }).message(),
              "rendering gives more than 3 bytes")
        << source;
}

}  // namespace
}  // namespace rl
