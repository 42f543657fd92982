#include "rl/algo/estimator_list.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "rl/algo/masked.h"
#include "rl/algo/scan_backwards.h"
#include "rl/algo/token_advantage.h"
#include "rl/algo/token_estimator.h"
#include "runtime/core/check.h"

namespace rl {

Advantages reinforce_plus_plus(const at::Tensor& rewards_BT, const at::Tensor& mask_BT,
                               double gamma) {
  CHECK(rewards_BT.sizes() == mask_BT.sizes());
  c10::AutoGradMode off(false);
  const at::Tensor returns_BT =
      mask_BT * scan_backwards(mask_BT, [&](std::int64_t t, const at::Tensor& later) {
        return rewards_BT.select(1, t) + gamma * later;
      });
  return {masked_whiten(returns_BT, mask_BT), returns_BT};
}

namespace {

class ReinforcePlusPlus : public TokenEstimator {
 public:
  ReinforcePlusPlus() : TokenEstimator({.name = "reinforce_plus_plus", .is_whitened = true}) {}

  Advantages advantages(const RewardedTokens& tokens, const GaeOptions& options) const override {
    // Whitened once all workers' returns are known.
    const at::Tensor returns_BT =
        reinforce_plus_plus(tokens.rewards_BT, tokens.mask_BT, options.gamma).returns_BT;
    return {returns_BT, returns_BT};
  }
};

}  // namespace

const AdvantageEstimator& reinforce_plus_plus_estimator() {
  static const ReinforcePlusPlus estimator;
  return estimator;
}

}  // namespace rl
