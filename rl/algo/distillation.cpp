#include "rl/algo/distillation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <tuple>

#include "runtime/core/check.h"

namespace rl {
namespace {

// Log-probabilities of the chosen tokens and, last, of all others together; [N, k + 1].
at::Tensor with_the_rest(const at::Tensor& logits_NV, const at::Tensor& chosen_Nk) {
  const at::Tensor normalizer_N1 = logits_NV.logsumexp(1, /*keepdim=*/true);
  const at::Tensor rest_N1 =
      logits_NV.scatter(1, chosen_Nk, -std::numeric_limits<double>::infinity())
          .logsumexp(1, /*keepdim=*/true);
  return at::cat({logits_NV.gather(1, chosen_Nk), rest_N1}, 1) - normalizer_N1;
}

}  // namespace

at::Tensor distillation_kl(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                           const DistillationOptions& options) {
  CHECK(student_NV.sizes() == teacher_NV.sizes());
  CHECK(options.temperature > 0);
  at::Tensor student = student_NV / options.temperature;
  at::Tensor teacher = teacher_NV.detach() / options.temperature;
  if (options.top_k > 0 && options.top_k < teacher.size(1)) {
    const at::Tensor chosen_Nk = std::get<1>(teacher.topk(options.top_k, 1));
    student = with_the_rest(student, chosen_Nk);
    teacher = with_the_rest(teacher, chosen_Nk);
  } else {
    student = at::log_softmax(student, 1);
    teacher = at::log_softmax(teacher, 1);
  }
  // What the teacher rules out costs nothing, though its log-probability is -inf.
  const at::Tensor p = teacher.exp();
  const at::Tensor terms = at::where(p > 0, p * (teacher - student), at::zeros_like(p));
  return terms.sum(1) * (options.temperature * options.temperature);
}

at::Tensor distillation_loss(const at::Tensor& cross_entropy_N, const at::Tensor& kl_N,
                             const DistillationOptions& options) {
  return cross_entropy_N * (1.0 - options.weight) + kl_N * options.weight;
}

}  // namespace rl
