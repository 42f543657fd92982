#include "rl/worker/covariant_tokens.h"

#include <gtest/gtest.h>

#include <numeric>

namespace rl {
namespace {

// Two responses of 3 tokens each, in one mini-batch.
RolloutBatch covariant_samples() {
  RolloutBatch batch;
  batch.prompts.append(std::vector<std::int32_t>{1, 2});
  for (const auto& row : std::vector<std::vector<std::int32_t>>{{3, 4, 5}, {6, 7, 8}}) {
    batch.responses.append(row);
    batch.prompt_of.push_back(0);
    batch.stopped.push_back(1);
  }
  batch.logprobs = {-1, -2, -6, -1, -2, -6};  // a mean of -3
  return batch;
}

const std::vector<float> kAdvantages{1, 1, 1, -1, -1, -1};  // covariances 2, 1, -3, -2, -1, 3
const std::vector<MiniBatch> kWholeBatch{{0, 2, 6, 2, 0}};

TEST(CovariantTokens, KlCovTakesTheLargest) {
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  const auto chosen = [&](double ratio) {
    return *covariant_tokens(CovarianceChoice::kKl, covariant_samples(), kAdvantages, kWholeBatch,
                             {.kl_ratio = ratio}, ranks);
  };
  EXPECT_EQ(chosen(0.0002), (std::vector<float>{0, 0, 0, 0, 0, 1}));  // at least one
  EXPECT_EQ(chosen(0.5), (std::vector<float>{1, 1, 0, 0, 0, 1}));
}

TEST(CovariantTokens, ClipCovDrawsBetweenItsBounds) {
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  const CovarianceOptions all{.clip_ratio = 1.0, .clip_lower = 0.5, .clip_upper = 2.5};
  EXPECT_EQ(*covariant_tokens(CovarianceChoice::kClip, covariant_samples(), kAdvantages,
                              kWholeBatch, all, ranks),
            (std::vector<float>{1, 1, 0, 0, 0, 0}));
  const CovarianceOptions none{.clip_ratio = 1.0, .clip_lower = 10.0, .clip_upper = 20.0};
  const std::vector<float> chosen = *covariant_tokens(CovarianceChoice::kClip, covariant_samples(),
                                                      kAdvantages, kWholeBatch, none, ranks);
  EXPECT_EQ(std::accumulate(chosen.begin(), chosen.end(), 0.0F), 0.0F);
}

TEST(CovariantTokens, EachMiniBatchHasItsOwnMeans) {
  const auto communicator = make_single_communicator();
  CommunicatorRanks ranks(*communicator);
  const std::vector<MiniBatch> halves{{0, 1, 3, 2, 0}, {1, 2, 3, 2, 0}};
  // One advantage in each: nothing varies, and nothing is chosen.
  EXPECT_EQ(
      *covariant_tokens(CovarianceChoice::kKl, covariant_samples(), kAdvantages, halves, {}, ranks),
      std::vector<float>(6, 0.0F));
}

}  // namespace
}  // namespace rl
