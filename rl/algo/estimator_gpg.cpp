#include "rl/algo/estimator_list.h"

#include <algorithm>
#include <cstddef>

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"

namespace rl {

std::vector<float> gpg_advantages(std::span<const float> scores, Groups groups) {
  std::vector<float> advantages = minus_group_mean(scores, groups);
  const auto successes =
      std::count_if(scores.begin(), scores.end(), [](float score) { return score != 0.0F; });
  const float scale = static_cast<float>(scores.size()) /
                      static_cast<float>(std::max<std::ptrdiff_t>(successes, 1));
  for (float& advantage : advantages) advantage *= scale;
  return advantages;
}

namespace {

class Gpg : public ResponseEstimator {
 public:
  Gpg() : ResponseEstimator({.name = "gpg", .does_with_one = true, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return gpg_advantages(responses.rewards, responses.groups);
  }
};

}  // namespace

const AdvantageEstimator& gpg_estimator() {
  static const Gpg estimator;
  return estimator;
}

}  // namespace rl
