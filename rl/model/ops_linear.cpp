#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <functional>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"

namespace rl::ops {
namespace {

std::vector<at::Tensor> values(std::span<const Weight> weights) {
  std::vector<at::Tensor> list;
  for (const Weight& weight : weights) list.push_back(weight.value);
  return list;
}

// Fewer rows than this are not worth a task of their own.
constexpr std::int64_t kRowsLeast = 64;

at::Tensor rows_of(const at::Tensor& t, const Block& block) { return t.narrow(0, block.first, block.count); }

// sum_i dy_i W_i over some rows.
at::Tensor input_gradient(std::span<const Weight> weights, const std::vector<at::Tensor>& dys, const Block& block) {
  at::Tensor dx;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!dys[i].defined()) continue;
    if (dx.defined()) {
      dx.addmm_(rows_of(dys[i], block), weights[i].value);
    } else {
      dx = at::mm(rows_of(dys[i], block), weights[i].value);
    }
  }
  return dx;
}

// dW += dy^T x for every trained weight.
void add_weight_gradients(kernel::ThreadPool& pool, const at::Tensor& x, std::span<const Weight> weights,
                          const std::vector<at::Tensor>& dys) {
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!dys[i].defined() || !weights[i].trained()) continue;
    for (const Block& block : cut(weights[i].value.size(0), kRowsLeast)) {
      tasks.emplace_back([grad = rows_of(weights[i].grad, block), dy = dys[i].narrow(1, block.first, block.count), &x]() mutable {
        grad.addmm_(dy.t(), x);
      });
    }
  }
  run_tasks(pool, tasks);
}

std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& grad : grads) dense.push_back(grad.defined() ? grad.contiguous() : grad);
  return dense;
}

// Gradient through y = n w with n = x s, in some rows: dx = s (dy w - n mean(dy w n)). Adds sum_t dy n to `d_weight`, if defined.
void rms_norm_backward_rows(const at::Tensor& n, const at::Tensor& inverse_rms, const at::Tensor& weight, const at::Tensor& dy,
                            at::Tensor dx, at::Tensor d_weight) {
  if (d_weight.defined()) d_weight.copy_((dy * n).sum(0));
  at::mul_out(dx, dy, weight);
  const at::Tensor along = (dx * n).mean(1, /*keepdim=*/true);
  dx.addcmul_(n, along, -1).mul_(inverse_rms.unsqueeze(1));
}

// A row per block, to be summed in order.
at::Tensor partial_sums(const Weight& norm, const std::vector<Block>& blocks) {
  if (!norm.trained()) return {};
  return at::empty({static_cast<std::int64_t>(blocks.size()), norm.value.size(0)}, norm.value.options());
}

void add_partial_sums(const Weight& norm, const at::Tensor& partials) {
  if (!partials.defined()) return;
  at::Tensor grad = norm.grad;
  grad.add_(partials.sum(0));
}

}  // namespace

at::Tensor embedding(kernel::ThreadPool& pool, const Weight& table, std::span<const std::int32_t> ids, bool track) {
  const bool build = c10::GradMode::is_enabled() && (track || table.trained());
  at::Tensor y = forward::embedding(pool, table.value, ids);
  if (!build) return y;
  const at::Tensor anchor = autograd::anchor();
  autograd::connect(y, {anchor}, [table, ids = std::vector<std::int32_t>(ids.begin(), ids.end())](const auto& grads) {
    if (table.trained() && grads[0].defined()) {
      const at::Tensor index = at::from_blob(const_cast<std::int32_t*>(ids.data()), {static_cast<std::int64_t>(ids.size())},
                                             at::TensorOptions().dtype(at::kInt))
                                   .to(table.grad.device());
      at::Tensor grad = table.grad;
      grad.index_add_(0, index, grads[0]);
    }
    return std::vector<at::Tensor>(1);
  });
  return y;
}

std::vector<at::Tensor> linear(kernel::ThreadPool& pool, const at::Tensor& x, std::span<const Weight> weights) {
  std::vector<at::Tensor> y;
  {
    c10::AutoGradMode off(false);
    y = forward::linear(pool, x, values(weights));
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(y, {x}, [&pool, x = x.detach(), weights = std::vector<Weight>(weights.begin(), weights.end())](const auto& grads) {
    const std::vector<at::Tensor> dys = contiguous(grads);
    at::Tensor dx = at::empty(x.sizes(), x.options());
    for_blocks(pool, cut(x.size(0), kRowsLeast), [&](const Block& block) { rows_of(dx, block).copy_(input_gradient(weights, dys, block)); });
    add_weight_gradients(pool, x, weights, dys);
    return std::vector<at::Tensor>{dx};
  });
  return y;
}

std::vector<at::Tensor> norm_linear(kernel::ThreadPool& pool, const at::Tensor& x, const Weight& norm, float eps,
                                    std::span<const Weight> weights) {
  std::vector<at::Tensor> y;
  forward::Normed inner;
  {
    c10::AutoGradMode off(false);
    inner = forward::rms_norm(pool, x, norm.value, eps);
    y = forward::linear(pool, inner.y, values(weights));
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(y, {x}, [&pool, x = x.detach(), inverse = inner.inverse_rms, norm,
                             weights = std::vector<Weight>(weights.begin(), weights.end())](const auto& grads) {
    const std::vector<at::Tensor> dys = contiguous(grads);
    const std::vector<Block> blocks = cut(x.size(0), kRowsLeast);
    at::Tensor dx = at::empty(x.sizes(), x.options());
    at::Tensor normed = at::empty(x.sizes(), x.options());  // computed again rather than kept
    const at::Tensor partials = partial_sums(norm, blocks);
    for_blocks(pool, blocks, [&](const Block& block) {
      const at::Tensor scale = rows_of(inverse, block);
      const at::Tensor n = rows_of(x, block) * scale.unsqueeze(1);
      at::Tensor normed_rows = rows_of(normed, block);
      at::mul_out(normed_rows, n, norm.value);
      const std::int64_t index = &block - blocks.data();
      rms_norm_backward_rows(n, scale, norm.value, input_gradient(weights, dys, block), rows_of(dx, block),
                             partials.defined() ? partials[index] : at::Tensor());
    });
    add_partial_sums(norm, partials);
    add_weight_gradients(pool, normed, weights, dys);
    return std::vector<at::Tensor>{dx};
  });
  return y;
}

at::Tensor rms_norm(kernel::ThreadPool& pool, const at::Tensor& x, const Weight& norm, float eps) {
  forward::Normed out;
  {
    c10::AutoGradMode off(false);
    out = forward::rms_norm(pool, x, norm.value, eps);
  }
  if (!autograd::needed({x})) return out.y;
  autograd::connect(out.y, {x}, [&pool, x = x.detach(), inverse = out.inverse_rms, norm](const auto& grads) {
    const std::vector<Block> blocks = cut(x.size(0), kRowsLeast);
    at::Tensor dx = at::empty(x.sizes(), x.options());
    const at::Tensor partials = partial_sums(norm, blocks);
    for_blocks(pool, blocks, [&](const Block& block) {
      const at::Tensor scale = rows_of(inverse, block);
      const std::int64_t index = &block - blocks.data();
      rms_norm_backward_rows(rows_of(x, block) * scale.unsqueeze(1), scale, norm.value, rows_of(grads[0], block), rows_of(dx, block),
                             partials.defined() ? partials[index] : at::Tensor());
    });
    add_partial_sums(norm, partials);
    return std::vector<at::Tensor>{dx};
  });
  return out.y;
}

at::Tensor silu_mul_linear(kernel::ThreadPool& pool, const at::Tensor& gate, const at::Tensor& up, const Weight& down) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::linear(pool, forward::silu_mul(pool, gate, up), down.value);
  }
  if (!autograd::needed({gate, up})) return y;
  autograd::connect(y, {gate, up}, [&pool, gate = gate.detach(), up = up.detach(), down](const auto& grads) {
    const std::vector<at::Tensor> dys = contiguous(grads);
    at::Tensor product = at::empty(gate.sizes(), gate.options());  // computed again rather than kept
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options());
    at::Tensor d_up = at::empty(gate.sizes(), gate.options());
    for_blocks(pool, cut(gate.size(0), kRowsLeast), [&](const Block& block) {
      const at::Tensor g = rows_of(gate, block);
      const at::Tensor u = rows_of(up, block);
      const at::Tensor activated = at::silu(g);
      at::Tensor product_rows = rows_of(product, block);
      at::mul_out(product_rows, activated, u);
      at::Tensor d_product = at::mm(rows_of(dys[0], block), down.value);
      at::Tensor d_up_rows = rows_of(d_up, block);
      at::mul_out(d_up_rows, activated, d_product);
      at::Tensor d_gate_rows = rows_of(d_gate, block);
      at::silu_backward_out(d_gate_rows, d_product.mul_(u), g);
    });
    add_weight_gradients(pool, product, std::span(&down, 1), dys);
    return std::vector<at::Tensor>{d_gate, d_up};
  });
  return y;
}

at::Tensor add(kernel::ThreadPool& pool, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::add(pool, a, b);
  }
  if (!autograd::needed({a, b})) return y;
  autograd::connect(y, {a, b}, [](const auto& grads) { return std::vector<at::Tensor>{grads[0], grads[0]}; });
  return y;
}

at::Tensor select_rows(const at::Tensor& x, std::span<const std::int64_t> rows) {
  const at::Tensor index = at::from_blob(const_cast<std::int64_t*>(rows.data()), {static_cast<std::int64_t>(rows.size())},
                                         at::TensorOptions().dtype(at::kLong))
                               .to(x.device(), at::kLong, /*non_blocking=*/false, /*copy=*/true);
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = x.index_select(0, index);
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(y, {x}, [index, shape = x.sizes().vec()](const auto& grads) {
    at::Tensor dx = at::zeros(shape, grads[0].options());
    dx.index_add_(0, index, grads[0]);
    return std::vector<at::Tensor>{dx};
  });
  return y;
}

}  // namespace rl::ops
