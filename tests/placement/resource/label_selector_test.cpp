#include "placement/resource/label_selector.h"

#include <gtest/gtest.h>

namespace placement {
namespace {

TEST(LabelSelector, SaysWhatANodesLabelHasToBe) {
  const runtime::Labels node{{"zone", "a"}, {"kind", "fast"}};
  const auto meet = [&](const char* value) { return meets(node, {{"zone", value}}); };
  EXPECT_TRUE(meet("a"));
  EXPECT_FALSE(meet("b"));
  EXPECT_FALSE(meet("!a"));
  EXPECT_TRUE(meet("!b"));
  EXPECT_TRUE(meet("in(b, a)"));
  EXPECT_TRUE(meet("in(a)"));
  EXPECT_FALSE(meet("in(b,c)"));
  EXPECT_TRUE(meet("!in(b,c)"));
  EXPECT_TRUE(meet("*"));
  EXPECT_FALSE(meet("!*"));
}

TEST(LabelSelector, ALabelThatIsNotThereIsNoneOfThose) {
  const auto meet = [](const char* value) { return meets({}, {{"spot", value}}); };
  EXPECT_FALSE(meet("yes"));
  EXPECT_FALSE(meet("in(yes)"));
  EXPECT_FALSE(meet("*"));
  EXPECT_TRUE(meet("!yes"));
  EXPECT_TRUE(meet("!in(yes)"));
  EXPECT_TRUE(meet("!*"));
}

TEST(LabelSelector, NamesTheUnmet) {
  EXPECT_EQ(to_string(unmet({{"zone", "a"}}, {{"kind", "in(x, y)"}, {"zone", "a"}})),
            "kind=in(x, y)");
}

TEST(LabelSelector, RefusesWhatCannotBeMeant) {
  EXPECT_TRUE(check_selectors({{"zone", "in(a, b)"}, {"kind", "!*"}, {"rack", ""}}).ok());
  for (const runtime::Labels& bad : {runtime::Labels{{"", "a"}}, runtime::Labels{{"zone", "in(a"}},
                                     runtime::Labels{{"zone", "!in( )"}}}) {
    EXPECT_EQ(check_selectors(bad).code(), runtime::ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace placement
