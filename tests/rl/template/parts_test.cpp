// The parts of a rendering by themselves: its budget, its scopes, the arguments of a call.
#include <gtest/gtest.h>

#include "rl/template/arguments.h"
#include "rl/template/budget.h"
#include "rl/template/scope.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

// The error that `step` fails with; empty where it does not.
template <class Step>
std::string failure_of(Step&& step) {
  return testing::template_failure(step).message();
}

TEST(RenderBudget, StopsWhatNeedsMoreThanThereIs) {
  RenderBudget budget({.steps_max = 10, .output_bytes_max = 5, .work_bytes_max = 100});
  budget.charge(60);
  budget.charge_steps(10);
  budget.check_output(5);
  EXPECT_EQ(failure_of([&] { budget.charge(41); }),
            "rendering needs more than 100 bytes of memory");
  EXPECT_EQ(failure_of([&] { budget.charge_steps(1); }), "rendering takes more than 10 steps");
  EXPECT_EQ(failure_of([&] { budget.check_output(6); }), "rendering gives more than 5 bytes");
}

TEST(RenderBudget, CountsBytesAndCharactersThatAreLookedAt) {
  RenderBudget budget({.steps_max = 10});
  budget.charge_scan(5 * 32);
  budget.charge_characters(5 * 4);
  budget.charge_scan(31);
  EXPECT_EQ(failure_of([&] { budget.charge_characters(4); }), "rendering takes more than 10 steps");
}

TEST(RenderBudget, CountsCallsThatAreUnderWay) {
  RenderBudget budget({.depth_max = 2});
  const TemplateDepthGuard first = budget.nest_call();
  for (int i = 0; i < 3; ++i) {
    const TemplateDepthGuard second = budget.nest_call();
    EXPECT_EQ(failure_of([&] { budget.nest_call(); }),
              "RecursionError: maximum recursion depth exceeded");
  }
}

TEST(TemplateScope, ReplacesVariablesAndLeavesTheParents) {
  const auto outer = std::make_shared<TemplateScope>();
  outer->set("a", TemplateValue(std::int64_t{1}));
  const ScopePtr inner = inner_scope(outer);
  EXPECT_EQ(inner->find("a"), nullptr);
  inner->set("a", TemplateValue(std::int64_t{2}));
  inner->set("a", TemplateValue(std::int64_t{3}));
  EXPECT_EQ(inner->find("a")->as_int(), 3);
  EXPECT_EQ(inner->parent->find("a")->as_int(), 1);
}

TEST(CallArguments, AreFoundByPositionOrName) {
  CallArguments arguments;
  arguments.positional = {TemplateValue(std::int64_t{7})};
  arguments.named = {{"b", TemplateValue(true)}};
  EXPECT_EQ(arguments.integer(0, "a", 0), 7);
  EXPECT_TRUE(arguments.flag(1, "b", false));
  EXPECT_EQ(arguments.integer(2, "c", 5), 5);
  arguments.check("f", {"a", "b"});
  EXPECT_EQ(failure_of([&] {
              arguments.check("f", {"a", "c"});
            }),
            "TypeError: f() got an unexpected keyword argument 'b'");
  EXPECT_EQ(failure_of([&] { arguments.check("f", {}); }),
            "TypeError: f() takes at most 0 arguments (1 given)");
}

TEST(CallArguments, GiveTextOfAnyValueAndChargeIt) {
  CallArguments arguments;
  arguments.positional = {TemplateValue(std::int64_t{7})};
  arguments.named = {{"b", TemplateValue::text("word")}, {"c", TemplateValue::undefined("no c")}};
  RenderBudget budget({.steps_max = 1});
  EXPECT_EQ(arguments.text(budget, 1, "b", ""), "word");
  EXPECT_EQ(arguments.text(budget, 5, "d", "otherwise"), "otherwise");
  EXPECT_EQ(failure_of([&] { arguments.text(budget, 2, "c", ""); }), "UndefinedError: no c");
  EXPECT_EQ(arguments.text(budget, 0, "a", ""), "7");
  EXPECT_EQ(failure_of([&] { arguments.text(budget, 0, "a", ""); }),
            "rendering takes more than 1 steps");
}

}  // namespace
}  // namespace rl
