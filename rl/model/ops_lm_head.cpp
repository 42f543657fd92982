#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"

namespace rl::ops {
namespace {

// One stretch of rows: what backward needs of it.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  at::Tensor logits;  // [rows, V], or undefined when they are computed again
  forward::RowLogprobs out;
};

struct Head {
  at::Tensor x;  // [N, I]
  Weight weight;
  std::vector<std::int32_t> targets;
  LmHeadOptions options;
  std::vector<Chunk> chunks;
};

// In place: logits become their gradient. With z = logits / temperature and p = softmax(z),
// d logprob / dz = onehot - p and d entropy / dz = -p (log p + entropy).
void logits_to_gradient(at::Tensor& logits, const Chunk& chunk, std::span<const std::int32_t> targets, const LmHeadOptions& options,
                        const at::Tensor& d_logprob, const at::Tensor& d_entropy) {
  logits.mul_(1.0F / options.temperature).sub_(chunk.out.log_normalizer.unsqueeze(1));  // log p
  if (d_entropy.defined()) {
    at::Tensor factor = logits + chunk.out.entropy.unsqueeze(1);
    factor.mul_(d_entropy.unsqueeze(1));
    if (d_logprob.defined()) factor.add_(d_logprob.unsqueeze(1));
    logits.exp_().mul_(factor.neg_());
  } else {
    logits.exp_().mul_(d_logprob.neg().unsqueeze(1));
  }
  if (d_logprob.defined()) {
    const at::Tensor columns = at::from_blob(const_cast<std::int32_t*>(targets.data()), {chunk.rows, 1},
                                             at::TensorOptions().dtype(at::kInt))
                                   .to(logits.device(), at::kLong);
    logits.scatter_add_(1, columns, d_logprob.unsqueeze(1));
  }
  if (options.temperature != 1.0F) logits.mul_(1.0F / options.temperature);
}

at::Tensor backward(kernel::ThreadPool& pool, Head& head, const at::Tensor& d_logprobs, const at::Tensor& d_entropies) {
  at::Tensor dx = at::empty(head.x.sizes(), head.x.options());
  const auto part = [](const at::Tensor& t, const Chunk& chunk) { return t.defined() ? t.narrow(0, chunk.first, chunk.rows) : t; };
  for (Chunk& chunk : head.chunks) {
    const at::Tensor x = head.x.narrow(0, chunk.first, chunk.rows);
    at::Tensor logits = chunk.logits.defined() ? std::move(chunk.logits) : forward::linear(pool, x, head.weight.value);
    const auto targets = std::span(head.targets).subspan(static_cast<std::size_t>(chunk.first), static_cast<std::size_t>(chunk.rows));
    logits_to_gradient(logits, chunk, targets, head.options, part(d_logprobs, chunk), part(d_entropies, chunk));
    if (head.weight.trained()) head.weight.grad.addmm_(logits.t(), x);
    at::Tensor dx_rows = dx.narrow(0, chunk.first, chunk.rows);
    at::mm_out(dx_rows, logits, head.weight.value);
  }
  return dx;
}

}  // namespace

std::pair<at::Tensor, at::Tensor> lm_head_logprobs(kernel::ThreadPool& pool, const at::Tensor& x, const Weight& weight,
                                                   std::span<const std::int32_t> targets, const LmHeadOptions& options) {
  const bool build = autograd::needed({x});
  auto head = std::make_shared<Head>(Head{x.detach(), weight, {targets.begin(), targets.end()}, options, {}});
  std::vector<at::Tensor> outputs = {at::empty({x.size(0)}, head->x.options())};
  if (options.with_entropy) outputs.push_back(at::empty({x.size(0)}, head->x.options()));
  {
    c10::AutoGradMode off(false);
    const std::int64_t kept_rows = options.kept_bytes_max / (weight.value.size(0) * static_cast<std::int64_t>(sizeof(float)));
    for (std::int64_t first = 0; first < x.size(0); first += options.rows_max) {
      Chunk chunk;
      chunk.first = first;
      chunk.rows = std::min(options.rows_max, x.size(0) - first);
      at::Tensor logits = forward::linear(pool, head->x.narrow(0, first, chunk.rows), weight.value);
      chunk.out = forward::row_logprobs(pool, logits, targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(chunk.rows)),
                                        options.temperature, options.with_entropy);
      outputs[0].narrow(0, first, chunk.rows).copy_(chunk.out.logprob);
      if (options.with_entropy) outputs[1].narrow(0, first, chunk.rows).copy_(chunk.out.entropy);
      if (build && first + chunk.rows <= kept_rows) chunk.logits = std::move(logits);
      if (build) head->chunks.push_back(std::move(chunk));
    }
  }
  if (build) {
    autograd::connect(outputs, {x}, [&pool, head](const std::vector<at::Tensor>& grads) {
      return std::vector<at::Tensor>{backward(pool, *head, grads[0], grads.size() > 1 ? grads[1] : at::Tensor())};
    });
  }
  return {outputs[0], options.with_entropy ? outputs[1] : at::Tensor()};
}

}  // namespace rl::ops
