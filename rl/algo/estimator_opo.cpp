#include "rl/algo/estimator_list.h"

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<float> opo_advantages(std::span<const float> scores, Groups groups,
                                  std::span<const std::int64_t> lengths) {
  CHECK(lengths.size() == scores.size());
  return minus_baseline(scores, groups, [&](const GroupMembers& group) {
    double weighted = 0.0;
    double tokens = 0.0;
    for (const std::size_t i : group) {
      weighted += static_cast<double>(lengths[i]) * scores[i];
      tokens += static_cast<double>(lengths[i]);
    }
    return tokens > 0.0 ? weighted / tokens : group_mean(scores, group);
  });
}

namespace {

class Opo : public ResponseEstimator {
 public:
  Opo() : ResponseEstimator({.name = "opo", .group_size_min = 2, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return opo_advantages(responses.rewards, responses.groups, responses.lengths);
  }
};

}  // namespace

const AdvantageEstimator& opo_estimator() {
  static const Opo estimator;
  return estimator;
}

}  // namespace rl
