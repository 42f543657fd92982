#include "rl/reward/interval_union.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

using Sets = std::vector<std::string>;

TEST(IntervalUnion, PartsThatTouchAreOne) {
  EXPECT_TRUE(same_union_of_intervals({"(0,1]", "[1,3)"}, {"(0,3)"}));
  EXPECT_TRUE(same_union_of_intervals({"(0,1)", "(1,3)", "\\{1\\}"}, {"(0,3)"}));
  EXPECT_TRUE(same_union_of_intervals({"(-\\infty,0)", "[0,\\infty)"}, {"(-\\infty,\\infty)"}));
  EXPECT_TRUE(same_union_of_intervals({"[2,3]", "[0,\\frac{5}{2})"}, {"[0,3]"}));
  EXPECT_TRUE(same_union_of_intervals({"\\{1,2\\}", "\\{3\\}"}, {"\\{1,2,3\\}"}));
  EXPECT_TRUE(same_union_of_intervals({"(0,5)", "(1,2)"}, {"(0,5)"}));
}

TEST(IntervalUnion, BoundsAndGapsCount) {
  EXPECT_FALSE(same_union_of_intervals({"(0,1)", "(1,3)"}, {"(0,3)"}));
  EXPECT_FALSE(same_union_of_intervals({"(0,1]", "[1,3)"}, {"(0,3]"}));
  EXPECT_FALSE(same_union_of_intervals({"(0,1]", "[2,3)"}, {"(0,3)"}));
  EXPECT_FALSE(same_union_of_intervals({"(0,a]", "[a,3)"}, {"(0,3)"}));
  EXPECT_FALSE(same_union_of_intervals({"(3,0)"}, {"(3,0)"}));
  EXPECT_FALSE(same_union_of_intervals({"R"}, Sets{}));
}

}  // namespace
}  // namespace rl
