#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"

namespace rl::ops {
namespace {

std::vector<at::Tensor> values(std::span<const Weight> weights) {
  std::vector<at::Tensor> list;
  for (const Weight& weight : weights) list.push_back(weight.value);
  return list;
}

// dW += dy^T x for every trained weight, and the sum of dy W.
at::Tensor linear_backward(const at::Tensor& x, std::span<const Weight> weights, const std::vector<at::Tensor>& grads) {
  at::Tensor dx;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!grads[i].defined()) continue;
    const at::Tensor dy = grads[i].contiguous();
    if (weights[i].trained()) {
      at::Tensor grad = weights[i].grad;
      grad.addmm_(dy.t(), x);
    }
    if (dx.defined()) {
      dx.addmm_(dy, weights[i].value);
    } else {
      dx = at::mm(dy, weights[i].value);
    }
  }
  return dx;
}

// With n = x * s, y = n * w: dw += sum_t dy n, and dx = s (dy w - n mean(dy w n)).
at::Tensor rms_norm_backward(const at::Tensor& x, const at::Tensor& inverse_rms, const Weight& norm, const at::Tensor& dy) {
  const at::Tensor n = x * inverse_rms.unsqueeze(1);
  if (norm.trained()) {
    at::Tensor grad = norm.grad;
    grad.add_((dy * n).sum(0));
  }
  const at::Tensor dn = dy * norm.value;
  const at::Tensor along = (dn * n).mean(1, /*keepdim=*/true);
  return dn.sub_(n * along).mul_(inverse_rms.unsqueeze(1));
}

at::Tensor normed(const at::Tensor& x, const at::Tensor& inverse_rms, const at::Tensor& weight) {
  return (x * inverse_rms.unsqueeze(1)).mul_(weight);
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
  autograd::connect(y, {x}, [x = x.detach(), weights = std::vector<Weight>(weights.begin(), weights.end())](const auto& grads) {
    return std::vector<at::Tensor>{linear_backward(x, weights, grads)};
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
  autograd::connect(y, {x}, [x = x.detach(), inverse = inner.inverse_rms, norm,
                             weights = std::vector<Weight>(weights.begin(), weights.end())](const auto& grads) {
    const at::Tensor d_normed = linear_backward(normed(x, inverse, norm.value), weights, grads);
    return std::vector<at::Tensor>{rms_norm_backward(x, inverse, norm, d_normed)};
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
  autograd::connect(out.y, {x}, [x = x.detach(), inverse = out.inverse_rms, norm](const auto& grads) {
    return std::vector<at::Tensor>{rms_norm_backward(x, inverse, norm, grads[0])};
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
  autograd::connect(y, {gate, up}, [gate = gate.detach(), up = up.detach(), down](const auto& grads) {
    at::Tensor activated = at::silu(gate);
    at::Tensor d_product;
    {
      const at::Tensor product = activated * up;
      d_product = linear_backward(product, std::span(&down, 1), grads);
    }
    const at::Tensor d_up = activated.mul_(d_product);
    const at::Tensor d_gate = at::silu_backward(d_product.mul_(up), gate);
    return std::vector<at::Tensor>{d_gate, d_up};
  });
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
