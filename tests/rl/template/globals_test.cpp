// Functions that every template can call, by themselves.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/template/builtins.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

class TemplateGlobals : public ::testing::Test {
 protected:
  /// What the function gives in a template with these variables, or its failure.
  static std::string called(const std::string& name, const std::vector<ordered_json>& given,
                            const ordered_json& variables = ordered_json::object()) {
    TemplateEvaluator evaluator(variables, {});
    CallArguments arguments;
    for (const ordered_json& one : given)
      arguments.positional.push_back(TemplateValue::from_json(one));
    std::string text;
    const runtime::Status failure = template_failure([&] {
      const TemplateValue value = evaluator.call(find_global(evaluator, name), arguments);
      text = name == "range" ? std::to_string(value.items().size())
                             : value.to_string(evaluator.budget());
    });
    return failure.ok() ? text : failure.message();
  }
};

TEST_F(TemplateGlobals, ARangeEndsAtTheSandboxsLimit) {
  EXPECT_EQ(called("range", {100'000}), "100000");
  EXPECT_EQ(called("range", {100'001}),
            "OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE "
            "(100000).");
  EXPECT_EQ(called("range", {5, 0, -2}), "3");
  EXPECT_EQ(called("range", {1, INT64_MAX, INT64_MAX}), "1") << "the next one is beyond 64 bits";
  EXPECT_EQ(called("range", {1, 5, 0}), "ValueError: range() arg 3 must not be zero");
  EXPECT_EQ(called("range", {}), "TypeError: range expected at least 1 argument, got 0");
}

TEST_F(TemplateGlobals, TheTimeIsThatOfTheVariableNowInItsSeveralForms) {
  const auto at = [](const std::string& now) {
    return called("strftime_now", {"%a %d %b %Y %H:%M:%S.%f"}, {{"now", now}});
  };
  EXPECT_EQ(at("2026-03-05"), "Thu 05 Mar 2026 00:00:00.000000");
  EXPECT_EQ(at("2026-03-05 09:07"), "Thu 05 Mar 2026 09:07:00.000000");
  EXPECT_EQ(at("2026-03-05T09:07:08.0251"), "Thu 05 Mar 2026 09:07:08.025100");
  for (const char* bad : {"yesterday", "2026-03-05Tnoon", ""})
    EXPECT_EQ(at(bad), "ValueError: the variable now is no ISO time: '" + std::string(bad) + "'");
}

TEST_F(TemplateGlobals, ADictCopiesItsArgument) {
  EXPECT_EQ(called("dict", {{{"a", 1}}}), "{'a': 1}");
  EXPECT_EQ(called("dict", {7}), "TypeError: 'int' object is not iterable");
}

TEST_F(TemplateGlobals, OthersOfJinjaAreRefusedByNameAndTheRestIsUndefined) {
  TemplateEvaluator evaluator(ordered_json::object(), {});
  for (const char* name : {"cycler", "joiner", "lipsum"}) {
    const runtime::Status refused = template_failure([&] { find_global(evaluator, name); });
    EXPECT_EQ(refused.code(), runtime::ErrorCode::kUnimplemented);
    EXPECT_NE(refused.message().find(name), std::string::npos) << refused.message();
  }
  EXPECT_EQ(find_global(evaluator, "nope").as_undefined().message, "'nope' is undefined");
}

}  // namespace
}  // namespace rl
