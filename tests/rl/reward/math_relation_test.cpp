#include "rl/reward/math_relation.h"

#include <gtest/gtest.h>

namespace rl {
namespace {

TEST(MathRelation, ChainsHaveSidesAndRelations) {
  const RelationChain chain = relation_chain("2 < x \\le 7");
  EXPECT_EQ(chain.sides, (std::vector<std::string>{"2", "x", "7"}));
  EXPECT_EQ(chain.relations, (std::vector<Relation>{Relation::kLess, Relation::kLessEqual}));
  const RelationChain back = chain.reversed();
  EXPECT_EQ(back.sides, (std::vector<std::string>{"7", "x", "2"}));
  EXPECT_EQ(back.relations, (std::vector<Relation>{Relation::kGreaterEqual, Relation::kGreater}));
  EXPECT_TRUE(relation_chain("(x = 1)").relations.empty());  // within brackets
  EXPECT_TRUE(relation_chain("\\left").relations.empty());   // no "\le"
}

TEST(MathRelation, NamesSayNothingOfAValue) {
  for (const char* name : {"x", "\\theta", "f(x)", "(x, y)", "\\angle ABC", "x_1", "a_{12}", "Area",
                           "f(3)", "f^{-1}(3)", "P(X > 2)", "[ABC]"})
    EXPECT_TRUE(is_answer_name(name)) << name;
  for (const char* other : {"", "5", "2x", "2(x)", "x + y", "x^2", "\\pm x"})
    EXPECT_FALSE(is_answer_name(other)) << other;
}

TEST(MathRelation, TheValueBehindAName) {
  EXPECT_EQ(named_value("x = 5"), "5");
  EXPECT_EQ(named_value("x = 2 + 3 = 5"), "5");
  EXPECT_EQ(named_value("\\theta \\in [0,1]"), "[0,1]");
  EXPECT_EQ(named_value("n = 1, 2"), "1, 2");
  EXPECT_EQ(named_value("x = 1, y = 2"), std::nullopt);
  EXPECT_EQ(named_value("x + y = 5"), std::nullopt);
  EXPECT_EQ(named_value("(0,\\infty)"), std::nullopt);
}

TEST(MathRelation, BoundsAreIntervals) {
  EXPECT_EQ(as_interval(relation_chain("2 < x \\le 7")), "(2,7]");
  EXPECT_EQ(as_interval(relation_chain("7 \\ge x > 2")), "(2,7]");
  EXPECT_EQ(as_interval(relation_chain("x > 3")), "(3,\\infty)");
  EXPECT_EQ(as_interval(relation_chain("x \\le 3")), "(-\\infty,3]");
  EXPECT_EQ(as_interval(relation_chain("x = 3")), std::nullopt);
  EXPECT_EQ(as_interval(relation_chain("2x < 3")), std::nullopt);
}

}  // namespace
}  // namespace rl
