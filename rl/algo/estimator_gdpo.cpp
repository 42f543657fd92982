#include "rl/algo/estimator_list.h"

#include <utility>

#include "rl/algo/group_advantage.h"
#include "rl/algo/group_scores.h"
#include "rl/algo/response_estimator.h"
#include "runtime/core/check.h"

namespace rl {

std::vector<float> gdpo_advantages(std::span<const std::vector<float>> components,
                                   std::span<const double> weights, Groups groups,
                                   std::span<const std::int64_t> lengths, bool normalize_by_std) {
  CHECK(weights.empty() || weights.size() == components.size());
  std::vector<float> sum(lengths.size(), 0.0F);
  for (std::size_t k = 0; k < components.size(); ++k) {
    CHECK(components[k].size() == lengths.size());
    const std::vector<float> part = grpo_advantages(components[k], groups, normalize_by_std);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<float>(weights.empty() ? 1.0 : weights[k]) * part[i];
  }
  return whitened_over_tokens(std::move(sum), lengths);
}

namespace {

class Gdpo : public ResponseEstimator {
 public:
  Gdpo()
      : ResponseEstimator(
            {.name = "gdpo", .needs_components = true, .does_with_one = true, .remainder_min = 2}) {
  }

  runtime::Result<std::vector<float>> advantages(const ScoredResponses& responses,
                                                 const ResponseSettings& settings) const override {
    return gdpo_advantages(responses.components, settings.component_weights, responses.groups,
                           responses.lengths, settings.normalize_by_std);
  }
};

}  // namespace

const AdvantageEstimator& gdpo_estimator() {
  static const Gdpo estimator;
  return estimator;
}

}  // namespace rl
