#include "rl/algo/estimator_list.h"

#include <algorithm>

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<float> grpo_passk_advantages(std::span<const float> scores, Groups groups,
                                         bool normalize_by_std) {
  std::vector<float> advantages(scores.size(), 0.0F);
  for (GroupMembers& group : members_of(scores, groups)) {
    CHECK(group.size() >= 2);
    std::partial_sort(group.begin(), group.begin() + 2, group.end(),
                      [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    const double lead = scores[group[0]] - scores[group[1]];
    advantages[group[0]] = static_cast<float>(
        normalize_by_std ? lead / (group_deviation(scores, group) + kDeviationEpsilon) : lead);
  }
  return advantages;
}

namespace {

class GrpoPassk : public ResponseEstimator {
 public:
  GrpoPassk()
      : ResponseEstimator({.name = "grpo_passk", .group_size_min = 2, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return grpo_passk_advantages(responses.rewards, responses.groups, settings.normalize_by_std);
  }
};

}  // namespace

const AdvantageEstimator& grpo_passk_estimator() {
  static const GrpoPassk estimator;
  return estimator;
}

}  // namespace rl
