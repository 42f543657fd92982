#include "rl/algo/estimator_list.h"

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"

namespace rl {

std::vector<float> rloo_advantages(std::span<const float> scores, Groups groups) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const GroupMembers& group : members_of(scores, groups)) {
    if (group.size() < 2) continue;
    const double centre = group_mean(scores, group);
    const double count = static_cast<double>(group.size());
    // The mean of the others is (n mean - score) / (n - 1).
    for (const std::size_t i : group)
      advantages[i] = static_cast<float>((scores[i] - centre) * count / (count - 1.0));
  }
  return advantages;
}

namespace {

class Rloo : public ResponseEstimator {
 public:
  Rloo() : ResponseEstimator({.name = "rloo", .group_size_min = 2, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return rloo_advantages(responses.rewards, responses.groups);
  }
};

}  // namespace

const AdvantageEstimator& rloo_estimator() {
  static const Rloo estimator;
  return estimator;
}

}  // namespace rl
