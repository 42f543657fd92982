#include "rl/algo/estimator_codapo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rl/algo/group_advantage.h"

namespace rl {
namespace {

// Of group 7 one of two is right, at probabilities 1/2; of group 3 all are; of group 5 one of four
// is, at 1/4.
const std::vector<std::int64_t> kPrompts{7, 7, 3, 3, 5, 5, 5, 5};
const std::vector<std::uint8_t> kRight{1, 0, 1, 1, 0, 0, 1, 0};
std::vector<float> sequence_logprobs() {
  const auto half = static_cast<float>(std::log(0.5)), quarter = static_cast<float>(std::log(0.25));
  return {half, half, quarter, 0.0F, quarter, quarter, quarter, quarter};
}

TEST(Codapo, APromptIsWorthMostWhereHalfIsRightAndThePolicyIsSure) {
  const std::vector<double> values = codapo_values(sequence_logprobs(), kRight, kPrompts);
  const std::vector<double> expected{0.5,         0.5,         0,           0,
                                     0.25 * 0.75, 0.25 * 0.75, 0.25 * 0.75, 0.25 * 0.75};
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-7) << i;
}

TEST(Codapo, AdvantagesAreGrposTimesTheValue) {
  const std::vector<float> scores{1, 0, 1, 0.5F,
                                  0, 0, 1, 0};  // not what is right: a format reward too, say
  const std::vector<float> plain = grpo_advantages(scores, kPrompts);
  const std::vector<float> weighed = codapo_advantages(
      scores, codapo_values(sequence_logprobs(), kRight, kPrompts), kPrompts, 0.1);
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_NEAR(weighed[i], plain[i] * (i < 2 ? 0.6 : i < 4 ? 0.1 : 0.2875), 1e-6) << i;
}

TEST(Codapo, TheFocusIsOnTheLargestValuesInTurns) {
  const std::vector<double> values{0.1, 0.1, 0.9, 0.9, 0.8, 0.8, 0.2, 0.2};
  const std::vector<std::int64_t> groups{0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(codapo_focus(values, groups, 2, 4),
            (std::vector<std::int64_t>{1, 2, 1, 2}));  // as verl's test has it
  EXPECT_EQ(codapo_focus(values, groups, 9, 5), (std::vector<std::int64_t>{1, 2, 3, 0, 1}));
  EXPECT_EQ(codapo_focus({}, {}, 2, 4), std::vector<std::int64_t>());
  EXPECT_EQ(codapo_focus(std::vector<double>(8, 0.5), groups, 2, 2),
            (std::vector<std::int64_t>{0, 1}));  // the earlier among equals
}

}  // namespace
}  // namespace rl
