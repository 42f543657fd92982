// ResponseEstimator: an estimator that gives each response one advantage, which all its tokens
// share. Torch-free.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "runtime/core/check.h"
#include "runtime/core/result.h"

namespace rl {

/// A step's responses: lists with an entry for each, in one order.
struct ScoredResponses {
  std::vector<float> rewards = {};         // scores, scaled, and less the KL if it is in the reward
  std::vector<float> scores = {};          // as the reward gave them
  std::vector<std::int64_t> groups = {};   // any ids, equal for responses to one prompt
  std::vector<std::int64_t> lengths = {};  // in learned tokens
  std::vector<std::vector<float>> components = {};  // a list for each number asked for by
                                                    // EstimatorTraits::needs_components
  std::vector<double> prompt_values = {};  // what prompts are worth: codapo_values(); or empty
};

/// Numbers of `algorithm.*`; an estimator uses those of its formula.
struct ResponseSettings {
  bool normalize_by_std = true;                // norm_adv_by_std_in_grpo
  std::vector<double> component_weights = {};  // gdpo_reward_weights; empty: all 1
  double prompt_value_offset = 0.1;            // codapo_weight_offset
};

class ResponseEstimator : public AdvantageEstimator {
 public:
  const ResponseEstimator* of_responses() const final { return this; }

  /// One advantage for each response, in units of score, of the group's standard deviation, or of
  /// the step's. Built-in ones do not fail.
  virtual runtime::Result<std::vector<float>> advantages(
      const ScoredResponses& responses, const ResponseSettings& settings) const = 0;

 protected:
  explicit ResponseEstimator(EstimatorTraits traits) : AdvantageEstimator(std::move(traits)) {
    CHECK(!this->traits().needs_critic);
    CHECK(!this->traits().needs_greedy_response);
    CHECK(!this->traits().needs_probabilities);
    CHECK(!this->traits().is_whitened);
  }
};

}  // namespace rl
