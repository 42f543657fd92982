#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "rl/kernel/elementwise.h"
#include "rl/model/autograd.h"
#include "rl/model/linear_backward.h"
#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/pass_team.h"
#include "rl/model/products.h"
#include "rl/model/row_sums.h"

namespace rl::ops {
namespace {

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

// The blocks of rows that sums are made in; of own rows those of one rank that are here.
std::vector<Block> norm_blocks(const PassContext& pass, const at::Tensor& x, const Spread& spread) {
  if (!spread.rows) return cut(x.size(0), kRowsLeast, x.device());
  const int rank = pass.team->rank();
  std::vector<Block> own;
  for (const Block& block : cut(spread.rows->total(), kRowsLeast, x.device())) {
    const std::int64_t first = block.first - spread.rows->first(rank);
    if (first >= 0 && first < spread.rows->size(rank)) own.push_back({first, block.count});
  }
  return own;
}

void add_partial_sums(const PassContext& pass, const Norm& norm, const NormSums& sums,
                      const Spread& spread) {
  const auto all = [&](const at::Tensor& own) {
    return spread.rows ? pass.team->all_rows(
                             own, blocks_of_ranks(spread.rows->total(), spread.rows->ranks()),
                             "sums of a norm")
                       : own;
  };
  if (sums.weight.defined()) norm.weight.add_gradient_of_rows(all(sums.weight));
  if (sums.bias.defined()) norm.bias.add_gradient_of_rows(all(sums.bias));
}

// Gradient through y = n w (+ b), in some rows, with n = x s or, for layer norms, (x - mean) s.
//
//     dx = s (dy w - n mean(dy w n)), and for layer norms less its mean
//
// Writes what the block adds to the gradients of w and b into row `index` of `sums`.
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

// d activation(x) / dx times `dy`.
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
  sum_rows_into(grad, rows, !sum->begin());
}

std::vector<at::Tensor> linear(const PassContext& pass, const at::Tensor& x,
                               std::span<const Linear> layers, const Spread& spread) {
  std::vector<at::Tensor> y;
  {
    c10::AutoGradMode off(false);
    y = linear_outputs(pass, x, layers, spread);
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(
      "linear backward", y, {x},
      [pass, spread, x = x.detach(),
       layers = std::vector<Linear>(layers.begin(), layers.end())](const auto& grads) {
        const LinearBackward back(pass, layers, grads, spread);
        const at::Tensor dx = back.input_gradient();
        back.add_weight_gradients(whole_input(pass, x, spread));
        return std::vector<at::Tensor>{dx};
      });
  return y;
}

at::Tensor linear(const PassContext& pass, const at::Tensor& x, const Linear& layer,
                  const Spread& spread) {
  return linear(pass, x, std::span(&layer, 1), spread).front();
}

std::vector<at::Tensor> norm_linear(const PassContext& pass, const at::Tensor& x, const Norm& norm,
                                    std::span<const Linear> layers, const Spread& spread) {
  std::vector<at::Tensor> y;
  forward::Normed inner;
  {
    c10::AutoGradMode off(false);
    inner = normed(pass, x, norm);
    y = linear_outputs(pass, inner.y, layers, spread);
  }
  if (!autograd::needed({x})) return y;
  autograd::connect(
      "norm and linear backward", y, {x},
      [pass, spread, x = x.detach(), moments = inner.moments, norm,
       layers = std::vector<Linear>(layers.begin(), layers.end())](const auto& grads) {
        const LinearBackward back(pass, layers, grads, spread);
        const std::vector<Block> blocks = norm_blocks(pass, x, spread);
        at::Tensor dx = at::empty(x.sizes(), x.options());
        at::Tensor inner_y =
            at::empty(x.sizes(), x.options());  // the normed rows, computed again rather than kept
        const at::Tensor scale = scale_of(norm);
        const NormSums sums = partial_sums(norm, blocks);
        const at::Tensor d_inner = back.input_gradient();
        for_blocks(pass.pool, blocks, x.device(), [&](const Block& block) {
          const at::Tensor n = unscaled(norm, rows_of(x, block), rows_of(moments, block));
          at::Tensor y_rows = rows_of(inner_y, block);
          at::mul_out(y_rows, n, scale);
          if (norm.bias.value.defined()) y_rows.add_(norm.bias.value);
          norm_backward_rows(norm, scale, n, rows_of(moments, block), rows_of(d_inner, block),
                             rows_of(dx, block), sums, &block - blocks.data());
        });
        add_partial_sums(pass, norm, sums, spread);
        back.add_weight_gradients(inner_y);
        return std::vector<at::Tensor>{dx};
      });
  return y;
}

at::Tensor norm(const PassContext& pass, const at::Tensor& x, const Norm& norm,
                const Spread& spread) {
  forward::Normed out;
  {
    c10::AutoGradMode off(false);
    out = normed(pass, x, norm);
  }
  if (!autograd::needed({x})) return out.y;
  autograd::connect(
      "norm backward", out.y, {x},
      [pass, spread, x = x.detach(), moments = out.moments, norm](const auto& grads) {
        const std::vector<at::Tensor> dys = contiguous(grads);
        const std::vector<Block> blocks = norm_blocks(pass, x, spread);
        at::Tensor dx = at::empty(x.sizes(), x.options());
        const at::Tensor scale = scale_of(norm);
        const NormSums sums = partial_sums(norm, blocks);
        for_blocks(pass.pool, blocks, x.device(), [&](const Block& block) {
          const at::Tensor n = unscaled(norm, rows_of(x, block), rows_of(moments, block));
          norm_backward_rows(norm, scale, n, rows_of(moments, block), rows_of(dys[0], block),
                             rows_of(dx, block), sums, &block - blocks.data());
        });
        add_partial_sums(pass, norm, sums, spread);
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
  if (gate.device().is_cpu()) {
    kernel::activate_backward(activation,
                              {.gate = gate.const_data_ptr<float>(),
                               .up = up.defined() ? up.const_data_ptr<float>() : nullptr,
                               .dp = d_product.const_data_ptr<float>(),
                               .count = gate.numel(),
                               .d_gate = d_gate.mutable_data_ptr<float>(),
                               .d_up = d_up.defined() ? d_up.mutable_data_ptr<float>() : nullptr,
                               .p = product.mutable_data_ptr<float>()});
    return;
  }
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
    const at::Tensor d_product = grads[0].clone(at::MemoryFormat::Contiguous);  // is written to
    at::Tensor product = at::empty(gate.sizes(), gate.options());
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options());
    at::Tensor d_up = up.defined() ? at::empty(gate.sizes(), gate.options()) : at::Tensor();
    for_blocks(pass.pool, cut(gate.size(0), kRowsLeast, gate.device()), gate.device(),
               [&](const Block& block) {
                 activate_backward_rows(activation, rows_of(gate, block), rows_if(up, block),
                                        rows_of(d_product, block), rows_of(d_gate, block),
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
                           const at::Tensor& gate, const at::Tensor& up, const Linear& down,
                           const Spread& spread) {
  at::Tensor y;
  {
    c10::AutoGradMode off(false);
    y = linear_outputs(pass, forward::activate(pass, activation, gate, up), std::span(&down, 1),
                       spread)
            .front();
  }
  if (!autograd::needed({gate, up})) return y;
  const auto backward = [pass, spread, activation, gate = gate.detach(),
                         up = up.defined() ? up.detach() : at::Tensor(), down](const auto& grads) {
    const LinearBackward back(pass, std::span(&down, 1), grads, spread);
    at::Tensor product =
        at::empty(gate.sizes(), gate.options());  // computed again rather than kept
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options());
    at::Tensor d_up = up.defined() ? at::empty(gate.sizes(), gate.options()) : at::Tensor();
    const at::Tensor d_product = back.input_gradient().contiguous();
    for_blocks(pass.pool, cut(gate.size(0), kRowsLeast, gate.device()), gate.device(),
               [&](const Block& block) {
                 activate_backward_rows(activation, rows_of(gate, block), rows_if(up, block),
                                        rows_of(d_product, block), rows_of(d_gate, block),
                                        rows_if(d_up, block), rows_of(product, block));
               });
    back.add_weight_gradients(whole_input(pass, product, spread));
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
