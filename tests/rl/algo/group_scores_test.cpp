// Scores by group, by hand. The formulas made of them are in group_advantage_test.cpp.
#include "rl/algo/group_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rl {
namespace {

using ScoreList = std::vector<float>;

const std::vector<std::int64_t> kMixedGroups{7, 3, 7, -1, 3, 7};

TEST(GroupScores, GroupsComeByTheirFirstResponseAndKeepTheOrderOfTheirs) {
  EXPECT_EQ(members_of(ScoreList(6, 0.0F), kMixedGroups),
            (std::vector<GroupMembers>{{0, 2, 5}, {1, 4}, {3}}));
}

TEST(GroupScores, TheDeviationIsTheSampleOne) {
  const ScoreList scores{1, 9, 2, 9, 9, 6};
  EXPECT_DOUBLE_EQ(group_mean(scores, {0, 2, 5}), 3.0);
  EXPECT_DOUBLE_EQ(group_deviation(scores, {0, 2, 5}), std::sqrt((4.0 + 1.0 + 9.0) / 2));
}

TEST(GroupScores, AResponseAloneKeepsItsScoreAndItsBaselineIsNotAskedFor) {
  const ScoreList scores{1, 10, 2, 5, 20, 6};
  EXPECT_EQ(minus_group_mean(scores, kMixedGroups), (ScoreList{-2, -5, -1, 5, 5, 3}));
  std::vector<std::size_t> sizes;
  const ScoreList rest = minus_baseline(scores, kMixedGroups, [&](const GroupMembers& group) {
    sizes.push_back(group.size());
    return 1.0;
  });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 2}));
  EXPECT_EQ(rest, (ScoreList{0, 9, 1, 5, 19, 5}));
}

// A response of three tokens counts three times.
TEST(GroupScores, WhiteningWeighsAResponseByItsTokens) {
  const std::vector<std::int64_t> lengths{3, 1, 0};
  const ScoreList white = whitened_over_tokens({1, 5, 100}, lengths);
  const double scale = std::sqrt((3 * 1.0 + 9.0) / 3);  // around a mean of 2
  EXPECT_NEAR(white[0], -1 / scale, 1e-6);
  EXPECT_NEAR(white[1], 3 / scale, 1e-6);
}

TEST(GroupScores, OfOneTokenOrOfEqualAdvantagesNothingIsDividedByZero) {
  EXPECT_EQ(whitened_over_tokens({4, 5}, std::vector<std::int64_t>{1, 0}), (ScoreList{4, 5}));
  EXPECT_EQ(whitened_over_tokens({4, 4}, std::vector<std::int64_t>{2, 2}), (ScoreList{0, 0}));
}

}  // namespace
}  // namespace rl
