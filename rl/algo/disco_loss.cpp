#include "rl/algo/disco_loss.h"

#include <ATen/TensorOperators.h>

#include "rl/algo/masked.h"
#include "rl/algo/policy_loss.h"
#include "runtime/core/check.h"

namespace rl {

at::Tensor disco_loss(const at::Tensor& logprobs_BT, const at::Tensor& old_logprobs_BT,
                      const at::Tensor& mask_BT, const at::Tensor& weights_B, bool by_ratio,
                      double kl_weight, double tokens) {
  CHECK(logprobs_BT.sizes() == mask_BT.sizes() && weights_B.size(0) == mask_BT.size(0));
  const at::Tensor log_BT = log_ratio(logprobs_BT, old_logprobs_BT);
  const at::Tensor token_weights_BT =
      mask_BT * (weights_B.detach() / mask_BT.sum(1).clamp_min(1.0)).unsqueeze(1);
  at::Tensor loss = masked_sum((by_ratio ? log_BT.exp() : logprobs_BT) * token_weights_BT, mask_BT);
  if (kl_weight != 0.0)
    loss = loss + masked_sum(log_BT.exp() - 1.0 - log_BT, mask_BT) * (kl_weight / tokens);
  return loss;
}

}  // namespace rl
