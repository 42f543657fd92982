// Estimates of the Kullback-Leibler divergence KL(pi || reference) from the log-probs of sampled
// tokens. Schulman, "Approximating KL Divergence", 2020, http://joschu.net/blog/kl-approx.html.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

enum class KlEstimator {
  kK1,   // log(pi / ref): unbiased, may be negative
  kAbs,  // |log(pi / ref)|
  kK2,   // half its square: biased, with the right gradient
  kK3,   // ref / pi - 1 - log(ref / pi): unbiased, never negative, low variance; bounded to 10
};

/// An estimator, optionally straight-through: the value of one with the gradient of k2, which is
/// the gradient of the divergence.
struct KlPenalty {
  KlEstimator estimator = KlEstimator::kK3;
  bool straight_through = false;
};

/// verl's names: "kl" or "k1", "abs", "mse" or "k2", "low_var_kl" or "k3", with "+" behind it for
/// straight-through. kInvalidArgument names them.
runtime::Result<KlPenalty> parse_kl_penalty(std::string_view name);

/// In nats per token; inputs of one shape, any number of dimensions. No gradient flows into the
/// reference.
at::Tensor kl_penalty(const at::Tensor& logprobs, const at::Tensor& reference_logprobs,
                      const KlPenalty& penalty);

}  // namespace rl
