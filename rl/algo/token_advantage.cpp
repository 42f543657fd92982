#include "rl/algo/token_advantage.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

#include "rl/algo/masked.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

// Runs `step(t, carried)` from the last column to the first. Where the mask is 0 the carried state
// passes through unchanged.
template <class Step>
at::Tensor scan_backwards(const at::Tensor& mask_BT, Step step) {
  std::vector<at::Tensor> columns(static_cast<std::size_t>(mask_BT.size(1)));
  at::Tensor carried = at::zeros({mask_BT.size(0)}, mask_BT.options());
  for (std::int64_t t = mask_BT.size(1) - 1; t >= 0; --t) {
    carried = at::where(mask_BT.select(1, t).to(at::kBool), step(t, carried), carried);
    columns[static_cast<std::size_t>(t)] = carried;
  }
  return columns.empty() ? at::zeros(mask_BT.sizes(), mask_BT.options()) : at::stack(columns, 1);
}

}  // namespace

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

Advantages remax(const at::Tensor& rewards_BT, const at::Tensor& baselines_B,
                 const at::Tensor& mask_BT) {
  CHECK(rewards_BT.sizes() == mask_BT.sizes() && baselines_B.size(0) == mask_BT.size(0));
  c10::AutoGradMode off(false);
  const at::Tensor returns_BT = (rewards_BT * mask_BT).flip({1}).cumsum(1).flip({1});
  return {(returns_BT - baselines_B.unsqueeze(1)) * mask_BT, returns_BT};
}

at::Tensor per_token(const at::Tensor& advantages_B, const at::Tensor& mask_BT) {
  CHECK(advantages_B.size(0) == mask_BT.size(0));
  return advantages_B.unsqueeze(1) * mask_BT;
}

}  // namespace rl
