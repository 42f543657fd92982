#include "rl/algo/estimator_list.h"

#include "rl/algo/group_advantage.h"
#include "rl/algo/response_estimator.h"

namespace rl {

std::vector<float> disco_labels(std::span<const float> scores) {
  std::vector<float> labels;
  for (const float score : scores)
    labels.push_back(score >= 1.0F ? 1.0F : score <= 0.0F ? -1.0F : 0.0F);
  return labels;
}

namespace {

class Disco : public ResponseEstimator {
 public:
  Disco() : ResponseEstimator({.name = "disco", .group_size_min = 2, .remainder_min = 2}) {}

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return disco_labels(responses.scores);
  }
};

}  // namespace

const AdvantageEstimator& disco_estimator() {
  static const Disco estimator;
  return estimator;
}

}  // namespace rl
