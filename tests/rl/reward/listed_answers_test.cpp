#include "rl/reward/listed_answers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_failure.h"

namespace rl {
namespace {

using nlohmann::ordered_json;

TEST(ListedAnswers, NumbersAndBooleansAreAnswersAsTheyAreWritten) {
  const auto answers = listed_answers("exact", ordered_json::parse(R"(["a", 7, 0.5, true, ""])"));
  ASSERT_TRUE(answers.ok()) << answers.status().to_string();
  EXPECT_EQ(*answers, (std::vector<std::string>{"a", "7", "0.5", "true", ""}));
}

TEST(ListedAnswers, OneThatIsNoAnswerIsAsBadAsNone) {
  const auto refused = [](const char* list, const std::string& why) {
    support::expect_failure(listed_answers("exact", ordered_json::parse(list)).status(),
                            runtime::ErrorCode::kInvalidArgument, {"reward rule 'exact'", why});
  };
  refused("[]", "without members");
  refused(R"(["a", ["b"]])", "one of them is");
  refused(R"(["a", {"b": 1}])", "one of them is");
  refused(R"(["a", null])", "one of them is null");
}

}  // namespace
}  // namespace rl
