#include "rl/algo/estimator_list.h"

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"

namespace rl {

std::vector<float> grpo_advantages(std::span<const float> scores, Groups groups,
                                   bool normalize_by_std) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const GroupMembers& group : members_of(scores, groups)) {
    const bool alone = group.size() < 2;
    const double centre = alone ? 0.0 : group_mean(scores, group);
    const double scale =
        normalize_by_std ? (alone ? 1.0 : group_deviation(scores, group)) + kDeviationEpsilon : 1.0;
    for (const std::size_t i : group)
      advantages[i] = static_cast<float>((scores[i] - centre) / scale);
  }
  return advantages;
}

namespace {

class Grpo : public ResponseEstimator {
 public:
  Grpo() : ResponseEstimator({.name = "grpo", .does_with_one = true, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return grpo_advantages(responses.rewards, responses.groups, settings.normalize_by_std);
  }
};

}  // namespace

const AdvantageEstimator& grpo_estimator() {
  static const Grpo estimator;
  return estimator;
}

}  // namespace rl
