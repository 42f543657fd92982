// Distillation: a student learns what a teacher would say at every token, not only the token that
// the data have. Shapes: N tokens, V vocabulary, fp32. Hinton et al. 2015, arXiv:1503.02531,
// section 2.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rl {

struct DistillationOptions {
  double temperature = 1.0;  // T: both distributions are softened by it, above 0
  double weight = 0.5;       // w in [0, 1]: of the teacher's distribution next to the data's token
  std::int64_t top_k =
      0;  // compare the teacher's k most likely tokens and all others as one; 0: all tokens
};

/// KL(teacher || student) at each token under softmax(logits / T), times T^2 so that gradients do
/// not shrink with the temperature; [N], in nats, at least 0. With `top_k` it is the divergence of
/// k + 1 events: one for each of the teacher's k most likely tokens, and "any other". That is never
/// more than the whole divergence. No gradient flows into the teacher.
at::Tensor distillation_kl(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                           const DistillationOptions& options);

/// (1 - w) * cross_entropy + w * kl, both [N].
at::Tensor distillation_loss(const at::Tensor& cross_entropy_N, const at::Tensor& kl_N,
                             const DistillationOptions& options);

}  // namespace rl
