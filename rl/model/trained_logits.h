// Logits with a graph, and what a loss makes of whole rows of them.
#pragma once

#include <ATen/core/Tensor.h>

#include "rl/model/ops.h"

namespace rl {

struct OutputLayer {
  ops::Linear layer;
  double softcap = 0.0;  // of the logits; 0: none
};

/// Logits of x [N, I], with a graph.
at::Tensor trained_logits(const PassContext& pass, const at::Tensor& x, const OutputLayer& head);

/// OfLogits of the rows of x [N, I], [N, K]: kLogitRows at a time, whose logits are computed again
/// in the backward pass. Of a team's ranks each has the logits of some of these rows, whether they
/// share outputs or rows, and all have the numbers.
at::Tensor numbers_of_logits(const PassContext& pass, const at::Tensor& x, const OutputLayer& head,
                             const OfLogits& numbers);

}  // namespace rl
