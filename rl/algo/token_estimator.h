// TokenEstimator: an estimator whose advantages differ from token to token. Workers ask it, since
// they have the tokens. Shapes and masks as in token_advantage.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "rl/algo/token_advantage.h"
#include "runtime/core/check.h"

namespace rl {

/// A worker's samples. Tensors that the estimator's traits do not ask for are undefined.
struct RewardedTokens {
  at::Tensor rewards_BT;
  at::Tensor mask_BT;
  std::vector<std::int64_t> groups = {};  // any ids, equal for responses to one prompt
  at::Tensor values_BT = {};              // needs_critic
  at::Tensor baselines_B = {};            // needs_greedy_response: its scores
  at::Tensor logprobs_BT = {};            // needs_probabilities: of the generated tokens
  at::Tensor squares_BT = {};             // needs_probabilities: sum p^2 over the vocabulary
};

class TokenEstimator : public AdvantageEstimator {
 public:
  const TokenEstimator* of_tokens() const final { return this; }

  /// What traits().is_whitened asks for is done later, over the tokens of all workers.
  virtual Advantages advantages(const RewardedTokens& tokens, const GaeOptions& options) const = 0;

 protected:
  explicit TokenEstimator(EstimatorTraits traits) : AdvantageEstimator(std::move(traits)) {
    CHECK(!this->traits().needs_components);
    CHECK(!this->traits().revisits_prompts);
    // A critic with its own model knows no probabilities of the policy's.
    CHECK(!(this->traits().needs_critic && this->traits().needs_probabilities));
  }
};

}  // namespace rl
