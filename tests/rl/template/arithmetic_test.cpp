// Operators by themselves. The expected values are Python's.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "rl/template/builtins.h"
#include "tests/rl/template/failure_of.h"

namespace rl {
namespace {

using nlohmann::ordered_json;
using testing::template_failure;

class TemplateArithmetic : public ::testing::Test {
 protected:
  std::string result(const ordered_json& a, const std::string& op, const ordered_json& b) {
    std::string text;
    const runtime::Status failure = template_failure([&] {
      text = arithmetic(evaluator_, op, TemplateValue::from_json(a), TemplateValue::from_json(b))
                 .repr(evaluator_.budget());
    });
    return failure.ok() ? text : failure.message();
  }

  static constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  TemplateEvaluator evaluator_{ordered_json::object(), {}};
};

TEST_F(TemplateArithmetic, TheExtremesOf64BitsOverflowAndNeverTrap) {
  EXPECT_EQ(result(kLeast, "//", -1), "OverflowError: integer beyond 64 bits");
  EXPECT_EQ(result(kLeast, "%", -1), "0");
  EXPECT_EQ(result(kLeast, "//", 3), "-3074457345618258603");
  EXPECT_EQ(result(kLeast, "-", 1), "OverflowError: integer beyond 64 bits");
  EXPECT_EQ(result(2, "**", 63), "OverflowError: integer beyond 64 bits");
  EXPECT_EQ(result(-2, "**", 63), std::to_string(kLeast));
}

TEST_F(TemplateArithmetic, LargePowersOfSmallNumbersTakeNoTime) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(result(-1, "**", kMost), "-1");
  EXPECT_EQ(result(-1, "**", kMost - 1), "1");
  EXPECT_EQ(result(1, "**", kMost), "1");
  EXPECT_EQ(result(0, "**", kMost), "0");
  EXPECT_EQ(result(0, "**", 0), "1");
}

TEST_F(TemplateArithmetic, QuotientsOfFloatsAreOfWholeNumbers) {
  EXPECT_EQ(result(1.0, "//", 0.1), "9.0") << "1.0 / 0.1 is rounded up to 10";
  EXPECT_EQ(result(-1.0, "//", std::numeric_limits<double>::max()), "-1.0");
  EXPECT_EQ(result(-0.0, "%", 5), "0.0") << "of the divisor's sign";
  EXPECT_EQ(result(5, "%", -5.0), "-0.0");
}

TEST_F(TemplateArithmetic, PowersThatAreNoFloatAreRefused) {
  EXPECT_EQ(result(-8, "**", 0.5), "ValueError: complex numbers are not supported");
  EXPECT_EQ(result(-8.0, "**", 3.0), "-512.0");
  EXPECT_EQ(result(10.0, "**", 400), "OverflowError: (34, 'Numerical result out of range')");
}

}  // namespace
}  // namespace rl
