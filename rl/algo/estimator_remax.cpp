#include "rl/algo/estimator_list.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "rl/algo/token_advantage.h"
#include "rl/algo/token_estimator.h"
#include "runtime/core/check.h"

namespace rl {

Advantages remax(const at::Tensor& rewards_BT, const at::Tensor& baselines_B,
                 const at::Tensor& mask_BT) {
  CHECK(rewards_BT.sizes() == mask_BT.sizes() && baselines_B.size(0) == mask_BT.size(0));
  c10::AutoGradMode off(false);
  const at::Tensor returns_BT = (rewards_BT * mask_BT).flip({1}).cumsum(1).flip({1});
  return {(returns_BT - baselines_B.unsqueeze(1)) * mask_BT, returns_BT};
}

namespace {

class Remax : public TokenEstimator {
 public:
  Remax() : TokenEstimator({.name = "remax", .needs_greedy_response = true}) {}

  Advantages advantages(const RewardedTokens& tokens, const GaeOptions& options) const override {
    return remax(tokens.rewards_BT, tokens.baselines_B, tokens.mask_BT);
  }
};

}  // namespace

const AdvantageEstimator& remax_estimator() {
  static const Remax estimator;
  return estimator;
}

}  // namespace rl
