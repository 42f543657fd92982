#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <functional>

#include "rl/model/autograd.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/row_sums.h"

namespace rl::ops {
namespace {

std::vector<forward::Linear> values(std::span<const Linear> layers) {
  std::vector<forward::Linear> list;
  for (const Linear& layer : layers) list.push_back({layer.weight.value, layer.bias.value});
  return list;
}

// Fewer rows than this are not worth a task of their own.
constexpr std::int64_t kRowsLeast = 64;

at::Tensor rows_of(const at::Tensor& t, const Block& block) {
  return t.narrow(0, block.first, block.count);
}

// What is multiplied in a backward pass: gradients of outputs, and weights. Rounded once, not for
// each block.
struct Factors {
  std::vector<at::Tensor> dys;
  std::vector<at::Tensor> weights;

  Factors(const PassContext& pass, std::span<const Linear> layers,
          const std::vector<at::Tensor>& grads) {
    for (const at::Tensor& grad : grads) dys.push_back(pass.as_factor(grad));
    for (const Linear& layer : layers) weights.push_back(pass.as_factor(layer.weight.value));
  }
};

// sum_i dy_i W_i over some rows, fp32.
at::Tensor input_gradient(const Factors& factors, const Block& block) {
  at::Tensor dx;
  for (std::size_t i = 0; i < factors.weights.size(); ++i) {
    const at::Tensor& dy = factors.dys[i];
    const at::Tensor& weight = factors.weights[i];
    if (!dy.defined()) continue;
    if (!dx.defined()) {
      dx = at::mm(rows_of(dy, block), weight).to(at::kFloat);
    } else if (weight.scalar_type() == at::kFloat) {
      dx.addmm_(rows_of(dy, block), weight);
    } else {
      dx.add_(at::mm(rows_of(dy, block), weight));
    }
  }
  return dx;
}

// dW += dy^T x and db += sum of dy, for everything that is trained.
void add_weight_gradients(const PassContext& pass, const at::Tensor& x_rows,
                          std::span<const Linear> layers, const std::vector<at::Tensor>& dys,
                          const Factors& factors) {
  const at::Tensor x = pass.as_factor(x_rows);
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!dys[i].defined()) continue;
    if (layers[i].bias.trained())
      tasks.emplace_back([bias = layers[i].bias, dy = dys[i]] { bias.add_gradient_of_rows(dy); });
    if (!layers[i].weight.trained()) continue;
    const bool first = layers[i].weight.sum->begin();
    for (const Block& block : cut(layers[i].weight.value.size(0), kRowsLeast, x.device())) {
      tasks.emplace_back([grad = rows_of(layers[i].weight.grad, block), first,
                          dy = factors.dys[i].narrow(1, block.first, block.count),
                          &x] { add_product(grad, dy.t(), x, first); });
    }
  }
  run_tasks(pass.pool, tasks, x.device());
}

std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& grad : grads) dense.push_back(grad.defined() ? grad.contiguous() : grad);
  return dense;
}

// What multiplies the normed rows.
at::Tensor scale_of(const Norm& norm) {
  return norm.kind == NormKind::kRmsPlusOne ? norm.weight.value + 1 : norm.weight.value;
}

forward::Normed normed(const PassContext& pass, const at::Tensor& x, const Norm& norm) {
  if (norm.kind == NormKind::kLayer)
    return forward::layer_norm(pass, x, norm.weight.value, norm.bias.value, norm.eps);
  return forward::rms_norm(pass, x, scale_of(norm), norm.eps);
}

// Some rows of x, brought to one size: n in y = n * weight (+ bias).
at::Tensor unscaled(const Norm& norm, const at::Tensor& x, const at::Tensor& moments) {
  if (norm.kind != NormKind::kLayer) return x * moments.unsqueeze(1);
  return (x - moments.narrow(1, 0, 1)).mul_(moments.narrow(1, 1, 1));
}

// The gradients of a norm's weight and bias: a row per block, to be summed in order.
struct NormSums {
  at::Tensor weight, bias;
};

NormSums partial_sums(const Norm& norm, const std::vector<Block>& blocks) {
  const auto rows = [&](const Weight& weight) {
    return weight.trained()
               ? at::empty({static_cast<std::int64_t>(blocks.size()), weight.value.size(0)},
                           weight.value.options())
               : at::Tensor();
  };
  return {rows(norm.weight), rows(norm.bias)};
}

void add_partial_sums(const Norm& norm, const NormSums& sums) {
  if (sums.weight.defined()) norm.weight.add_gradient_of_rows(sums.weight);
  if (sums.bias.defined()) norm.bias.add_gradient_of_rows(sums.bias);
}

// Gradient through y = n w (+ b) with n = x s or (x - mean) s, in some rows: dx = s (dy w - n
// mean(dy w n)), and for layer norms less its mean. Writes what the block adds to the gradients of
// w and b into row `index` of `sums`.
void norm_backward_rows(const Norm& norm, const at::Tensor& scale, const at::Tensor& n,
                        const at::Tensor& moments, const at::Tensor& dy, at::Tensor dx,
                        const NormSums& sums, std::int64_t index) {
  if (sums.weight.defined()) sums.weight[index].copy_((dy * n).sum(0));
  if (sums.bias.defined()) sums.bias[index].copy_(dy.sum(0));
  at::mul_out(dx, dy, scale);
  const at::Tensor along = (dx * n).mean(1, /*keepdim=*/true);
  if (norm.kind == NormKind::kLayer) dx.sub_(dx.mean(1, /*keepdim=*/true));
  dx.addcmul_(n, along, -1)
      .mul_(norm.kind == NormKind::kLayer ? moments.narrow(1, 1, 1) : moments.unsqueeze(1));
}

// d activation(x) / dx times `dy`, in place of it.
at::Tensor activation_backward(forward::Activation activation, const at::Tensor& dy,
                               const at::Tensor& x) {
  switch (activation) {
    case forward::Activation::kSilu: return at::silu_backward(dy, x);
    case forward::Activation::kGelu: return at::gelu_backward(dy, x);
    case forward::Activation::kGeluTanh: return at::gelu_backward(dy, x, "tanh");
    case forward::Activation::kSigmoid: return at::sigmoid_backward(dy, at::sigmoid(x));
    case forward::Activation::kRelu: break;
  }
  return dy * (x > 0);
}

at::Tensor activated_rows(forward::Activation activation, const at::Tensor& x) {
  switch (activation) {
    case forward::Activation::kSilu: return at::silu(x);
    case forward::Activation::kGelu: return at::gelu(x);
    case forward::Activation::kGeluTanh: return at::gelu(x, "tanh");
    case forward::Activation::kSigmoid: return at::sigmoid(x);
    case forward::Activation::kRelu: break;
  }
  return at::relu(x);
}

}  // namespace

void Weight::add_gradient(const at::Tensor& gradient) const {
  at::Tensor into = grad;
  if (sum->begin())
    into.copy_(gradient);
  else
    into.add_(gradient);
}

void Weight::add_gradient_of_rows(const at::Tensor& rows) const {
  at::Tensor into = grad;
  if (sum->begin())
    at::sum_out(into, rows, 0);
  else
    into.add_(rows.sum(0));
}

void add_product(at::Tensor into, const at::Tensor& a, const at::Tensor& b, bool first) {
  const bool exact = a.scalar_type() == at::kFloat;
  if (exact && first)
    at::mm_out(into, a, b);
  else if (exact)
    into.addmm_(a, b);
  else if (first)
    into.copy_(at::mm(a, b));
  else
    into.add_(at::mm(a, b));
}

at::Tensor embedding(const PassContext& pass, const Weight& table,
                     std::span<const std::int32_t> ids, bool track) {
  const bool build = c10::GradMode::is_enabled() && (track || table.trained());
  at::Tensor y = forward::embedding(pass, table.value, ids);
  if (!build) return y;
  const at::Tensor anchor = autograd::anchor();
  autograd::connect("embedding backward", y, {anchor},
                    [table, sums = RowSums({ids.begin(), ids.end()})](const auto& grads) {
                      if (table.trained() && grads[0].defined()) {
                        table.sum->begin_rows(sums.destinations());
                        sums.add(table.grad, grads[0]);
                      }
                      return std::vector<at::Tensor>(1);
                    });
  return y;
}

std::vector<at::Tensor> linear(const PassContext& pass, const at::Tensor& x,
                               std::span<const Linear> layers) {
  std::vector<at::Tensor> y;
  {
    c10::AutoGradMode off(false);
    y = forward::linear(pass, x, values(layers));
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(
      "linear backward", y, {x},
      [pass, x = x.detach(),
       layers = std::vector<Linear>(layers.begin(), layers.end())](const auto& grads) {
        const std::vector<at::Tensor> dys = contiguous(grads);
        const Factors factors(pass, layers, dys);
        at::Tensor dx = at::empty(x.sizes(), x.options());
        for_blocks(
            pass.pool, cut(x.size(0), kRowsLeast, x.device()), x.device(),
            [&](const Block& block) { rows_of(dx, block).copy_(input_gradient(factors, block)); });
        add_weight_gradients(pass, x, layers, dys, factors);
        return std::vector<at::Tensor>{dx};
      });
  return y;
}

at::Tensor linear(const PassContext& pass, const at::Tensor& x, const Linear& layer) {
  return linear(pass, x, std::span(&layer, 1)).front();
}

std::vector<at::Tensor> norm_linear(const PassContext& pass, const at::Tensor& x, const Norm& norm,
                                    std::span<const Linear> layers) {
  std::vector<at::Tensor> y;
  forward::Normed inner;
  {
    c10::AutoGradMode off(false);
    inner = normed(pass, x, norm);
    y = forward::linear(pass, inner.y, values(layers));
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(
      "norm and linear backward", y, {x},
      [pass, x = x.detach(), moments = inner.moments, norm,
       layers = std::vector<Linear>(layers.begin(), layers.end())](const auto& grads) {
        const std::vector<at::Tensor> dys = contiguous(grads);
        const Factors factors(pass, layers, dys);
        const std::vector<Block> blocks = cut(x.size(0), kRowsLeast, x.device());
        at::Tensor dx = at::empty(x.sizes(), x.options());
        at::Tensor inner_y =
            at::empty(x.sizes(), x.options());  // the normed rows, computed again rather than kept
        const at::Tensor scale = scale_of(norm);
        const NormSums sums = partial_sums(norm, blocks);
        for_blocks(pass.pool, blocks, x.device(), [&](const Block& block) {
          const at::Tensor n = unscaled(norm, rows_of(x, block), rows_of(moments, block));
          at::Tensor y_rows = rows_of(inner_y, block);
          at::mul_out(y_rows, n, scale);
          if (norm.bias.value.defined()) y_rows.add_(norm.bias.value);
          norm_backward_rows(norm, scale, n, rows_of(moments, block),
                             input_gradient(factors, block), rows_of(dx, block), sums,
                             &block - blocks.data());
        });
        add_partial_sums(norm, sums);
        add_weight_gradients(pass, inner_y, layers, dys, factors);
        return std::vector<at::Tensor>{dx};
      });
  return y;
}

at::Tensor norm(const PassContext& pass, const at::Tensor& x, const Norm& norm) {
  forward::Normed out;
  {
    c10::AutoGradMode off(false);
    out = normed(pass, x, norm);
  }
  if (!autograd::needed({x})) return out.y;
  autograd::connect(
      "norm backward", out.y, {x},
      [pass, x = x.detach(), moments = out.moments, norm](const auto& grads) {
        const std::vector<at::Tensor> dys = contiguous(grads);
        const std::vector<Block> blocks = cut(x.size(0), kRowsLeast, x.device());
        at::Tensor dx = at::empty(x.sizes(), x.options());
        const at::Tensor scale = scale_of(norm);
        const NormSums sums = partial_sums(norm, blocks);
        for_blocks(pass.pool, blocks, x.device(), [&](const Block& block) {
          const at::Tensor n = unscaled(norm, rows_of(x, block), rows_of(moments, block));
          norm_backward_rows(norm, scale, n, rows_of(moments, block), rows_of(dys[0], block),
                             rows_of(dx, block), sums, &block - blocks.data());
        });
        add_partial_sums(norm, sums);
        return std::vector<at::Tensor>{dx};
      });
  return out.y;
}

namespace {

// What backward needs of p = activation(gate) * up, or activation(gate), in some rows, given dp:
// the gradients of gate and up, and p again.
void activate_backward_rows(forward::Activation activation, const at::Tensor& gate,
                            const at::Tensor& up, at::Tensor d_product, at::Tensor d_gate,
                            at::Tensor d_up, at::Tensor product) {
  const at::Tensor activated = activated_rows(activation, gate);
  if (up.defined()) {
    at::mul_out(product, activated, up);
    at::mul_out(d_up, activated, d_product);
    d_product.mul_(up);
  } else {
    product.copy_(activated);
  }
  d_gate.copy_(activation_backward(activation, d_product, gate));
}

at::Tensor rows_if(const at::Tensor& t, const Block& block) {
  return t.defined() ? rows_of(t, block) : t;
}

}  // namespace

at::Tensor activate(const PassContext& pass, forward::Activation activation, const at::Tensor& gate,
                    const at::Tensor& up) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::activate(pass, activation, gate, up);
  }
  if (!autograd::needed({gate, up})) return y;
  const auto backward = [pass, activation, gate = gate.detach(),
                         up = up.defined() ? up.detach() : at::Tensor()](const auto& grads) {
    at::Tensor product = at::empty(gate.sizes(), gate.options());
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options());
    at::Tensor d_up = up.defined() ? at::empty(gate.sizes(), gate.options()) : at::Tensor();
    for_blocks(pass.pool, cut(gate.size(0), kRowsLeast, gate.device()), gate.device(),
               [&](const Block& block) {
                 activate_backward_rows(activation, rows_of(gate, block), rows_if(up, block),
                                        rows_of(grads[0], block).clone(), rows_of(d_gate, block),
                                        rows_if(d_up, block), rows_of(product, block));
               });
    return up.defined() ? std::vector<at::Tensor>{d_gate, d_up} : std::vector<at::Tensor>{d_gate};
  };
  if (up.defined())
    autograd::connect("activate backward", y, {gate, up}, backward);
  else
    autograd::connect("activate backward", y, {gate}, backward);
  return y;
}

at::Tensor activate_linear(const PassContext& pass, forward::Activation activation,
                           const at::Tensor& gate, const at::Tensor& up, const Linear& down) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::linear(pass, forward::activate(pass, activation, gate, up),
                        forward::Linear{down.weight.value, down.bias.value});
  }
  if (!autograd::needed({gate, up})) return y;
  const auto backward = [pass, activation, gate = gate.detach(),
                         up = up.defined() ? up.detach() : at::Tensor(), down](const auto& grads) {
    const std::vector<at::Tensor> dys = contiguous(grads);
    const Factors factors(pass, std::span(&down, 1), dys);
    at::Tensor product =
        at::empty(gate.sizes(), gate.options());  // computed again rather than kept
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options());
    at::Tensor d_up = up.defined() ? at::empty(gate.sizes(), gate.options()) : at::Tensor();
    for_blocks(pass.pool, cut(gate.size(0), kRowsLeast, gate.device()), gate.device(),
               [&](const Block& block) {
                 activate_backward_rows(activation, rows_of(gate, block), rows_if(up, block),
                                        input_gradient(factors, block), rows_of(d_gate, block),
                                        rows_if(d_up, block), rows_of(product, block));
               });
    add_weight_gradients(pass, product, std::span(&down, 1), dys, factors);
    return up.defined() ? std::vector<at::Tensor>{d_gate, d_up} : std::vector<at::Tensor>{d_gate};
  };
  if (up.defined())
    autograd::connect("activate and linear backward", y, {gate, up}, backward);
  else
    autograd::connect("activate and linear backward", y, {gate}, backward);
  return y;
}

at::Tensor add(const PassContext& pass, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = forward::add(pass, a, b);
  }
  if (!autograd::needed({a, b})) return y;
  autograd::connect("add backward", y, {a, b}, [](const auto& grads) {
    return std::vector<at::Tensor>{grads[0], grads[0]};
  });
  return y;
}

at::Tensor select_rows(const at::Tensor& x, std::span<const std::int64_t> rows) {
  const RowSums sums({rows.begin(), rows.end()});
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = x.index_select(0, sums.index(x.device()));
  }
  if (!autograd::needed({x})) return y;
  autograd::connect("select rows backward", y, {x},
                    [sums, shape = x.sizes().vec()](const auto& grads) {
                      at::Tensor dx = at::zeros(shape, grads[0].options());
                      sums.add(dx, grads[0]);
                      return std::vector<at::Tensor>{dx};
                    });
  return y;
}

}  // namespace rl::ops
