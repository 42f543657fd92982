#include "rl/algo/estimator_list.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "rl/algo/masked.h"
#include "rl/algo/scan_backwards.h"
#include "rl/algo/token_advantage.h"
#include "rl/algo/token_estimator.h"
#include "runtime/core/check.h"

namespace rl {

Advantages gae(const at::Tensor& rewards_BT, const at::Tensor& values_BT, const at::Tensor& mask_BT,
               const GaeOptions& options) {
  CHECK(rewards_BT.sizes() == mask_BT.sizes() && values_BT.sizes() == mask_BT.sizes());
  c10::AutoGradMode off(false);
  // `decay` is gamma times lambda: a number, or one a sequence.
  const auto look_ahead = [&](const auto& decay) {
    at::Tensor next_value = at::zeros({mask_BT.size(0)}, values_BT.options());
    return scan_backwards(mask_BT, [&](std::int64_t t, const at::Tensor& later) {
      const at::Tensor value = values_BT.select(1, t);
      const at::Tensor delta = rewards_BT.select(1, t) + options.gamma * next_value - value;
      next_value = at::where(mask_BT.select(1, t).to(at::kBool), value, next_value);
      return delta + decay * later;
    });
  };
  at::Tensor advantages_BT;
  if (options.length_alpha) {
    const at::Tensor lambda_B =
        (1.0 - 1.0 / (mask_BT.sum(1) * *options.length_alpha).clamp_min(1.0));
    advantages_BT = look_ahead(at::Tensor(lambda_B * options.gamma));
  } else {
    advantages_BT = look_ahead(options.gamma * options.lambda);
  }
  const bool decoupled =
      options.length_alpha || (options.critic_lambda && *options.critic_lambda != options.lambda);
  const at::Tensor errors_BT =
      decoupled ? look_ahead(options.gamma * options.critic_lambda.value_or(options.lambda))
                : advantages_BT;
  return {options.whiten ? masked_whiten(advantages_BT, mask_BT) : advantages_BT * mask_BT,
          errors_BT + values_BT};
}

namespace {

class Gae : public TokenEstimator {
 public:
  Gae() : TokenEstimator({.name = "gae", .needs_critic = true, .is_whitened = true}) {}

  Advantages advantages(const RewardedTokens& tokens, const GaeOptions& options) const override {
    return gae(tokens.rewards_BT, tokens.values_BT, tokens.mask_BT, options);
  }
};

}  // namespace

const AdvantageEstimator& gae_estimator() {
  static const Gae estimator;
  return estimator;
}

}  // namespace rl
