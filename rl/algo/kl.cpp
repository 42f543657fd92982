#include "rl/algo/kl.h"

#include <ATen/TensorOperators.h>

#include "runtime/core/check.h"

namespace rl {
namespace {

at::Tensor estimate(const at::Tensor& log_ratio, KlEstimator estimator) {
  switch (estimator) {
    case KlEstimator::kK1: return log_ratio;
    case KlEstimator::kAbs: return log_ratio.abs();
    case KlEstimator::kK2: return log_ratio.square() * 0.5;
    case KlEstimator::kK3: {
      // Bounded before and after, so that one unlucky token can't swamp the loss.
      const at::Tensor inverse = (-log_ratio).clamp(-20.0, 20.0);
      return (inverse.exp() - inverse - 1.0).clamp(-10.0, 10.0);
    }
  }
  runtime::check_failed(__FILE__, __LINE__, "unknown KL estimator");
}

}  // namespace

runtime::Result<KlPenalty> parse_kl_penalty(std::string_view name) {
  KlPenalty penalty;
  std::string_view base = name;
  if (base.ends_with('+')) {
    penalty.straight_through = true;
    base.remove_suffix(1);
  }
  if (base == "kl" || base == "k1") {
    penalty.estimator = KlEstimator::kK1;
  } else if (base == "abs") {
    penalty.estimator = KlEstimator::kAbs;
  } else if (base == "mse" || base == "k2") {
    penalty.estimator = KlEstimator::kK2;
  } else if (base == "low_var_kl" || base == "k3") {
    penalty.estimator = KlEstimator::kK3;
  } else {
    return runtime::invalid_argument(
        "KL estimator \"" + std::string(name) +
        "\" is none of kl, k1, abs, mse, k2, low_var_kl, k3 (with + behind for straight-through)");
  }
  return penalty;
}

at::Tensor kl_penalty(const at::Tensor& logprobs, const at::Tensor& reference_logprobs,
                      const KlPenalty& penalty) {
  CHECK(logprobs.sizes() == reference_logprobs.sizes());
  const at::Tensor log_ratio = logprobs - reference_logprobs.detach();
  const at::Tensor value = estimate(log_ratio, penalty.estimator);
  if (!penalty.straight_through) return value;
  const at::Tensor with_gradient = estimate(log_ratio, KlEstimator::kK2);
  return with_gradient - with_gradient.detach() + value.detach();
}

}  // namespace rl
