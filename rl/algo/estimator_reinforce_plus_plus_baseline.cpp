#include "rl/algo/estimator_list.h"

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<float> reinforce_plus_plus_baseline_advantages(std::span<const float> scores,
                                                           Groups groups,
                                                           std::span<const std::int64_t> lengths) {
  CHECK(lengths.size() == scores.size());
  return whitened_over_tokens(minus_group_mean(scores, groups), lengths);
}

namespace {

class ReinforcePlusPlusBaseline : public ResponseEstimator {
 public:
  ReinforcePlusPlusBaseline()
      : ResponseEstimator(
            {.name = "reinforce_plus_plus_baseline", .group_size_min = 2, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return reinforce_plus_plus_baseline_advantages(responses.rewards, responses.groups,
                                                   responses.lengths);
  }
};

}  // namespace

const AdvantageEstimator& reinforce_plus_plus_baseline_estimator() {
  static const ReinforcePlusPlusBaseline estimator;
  return estimator;
}

}  // namespace rl
