#include "rl/model/linear_backward.h"

#include <ATen/ops/empty.h>

#include <cstddef>
#include <functional>

#include "rl/model/pass_team.h"
#include "rl/model/products.h"
#include "runtime/core/check.h"

namespace rl::ops {
namespace {

std::vector<forward::Linear> values(std::span<const Linear> layers) {
  std::vector<forward::Linear> list;
  for (const Linear& layer : layers) list.push_back({layer.weight.value, layer.bias.value});
  return list;
}

bool is_shared(std::span<const Linear> layers) { return layers.front().cut != nullptr; }

std::vector<ColumnCut> cuts_of(std::span<const Linear> layers) {
  std::vector<ColumnCut> cuts;
  for (const Linear& layer : layers) cuts.push_back(*layer.cut);
  return cuts;
}

}  // namespace

std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> dense;
  for (const at::Tensor& grad : grads) dense.push_back(grad.defined() ? grad.contiguous() : grad);
  return dense;
}

at::Tensor whole_input(const PassContext& pass, const at::Tensor& x, const Spread& spread) {
  return spread.in ? pass.team->all_columns(x, *spread.in, "inputs") : x;
}

std::vector<at::Tensor> linear_outputs(const PassContext& pass, const at::Tensor& x,
                                       std::span<const Linear> layers, const Spread& spread) {
  if (!is_shared(layers)) return forward::linear(pass, x, values(layers));
  std::vector<at::Tensor> y = forward::linear(pass, whole_input(pass, x, spread), values(layers));
  if (spread.own_outputs) return y;
  return pass.team->all_columns(y, cuts_of(layers), "outputs");
}

LinearBackward::LinearBackward(const PassContext& pass, std::span<const Linear> layers,
                               const std::vector<at::Tensor>& grads, const Spread& spread)
    : pass_(pass), layers_(layers), rows_(spread.rows), dys_(contiguous(grads)) {
  if (is_shared(layers)) {
    share(spread);
    return;
  }
  for (const at::Tensor& dy : dys_) factors_.push_back(pass.as_factor(dy));
  for (const Linear& layer : layers) weights_.push_back(pass.as_factor(layer.weight.value));
}

// The rank computes its own columns of the input's gradient, of all outputs: sums are not cut.
void LinearBackward::share(const Spread& spread) {
  const PassTeam& team = *pass_.team;
  std::vector<at::Tensor> there;
  std::vector<ColumnCut> cuts;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!dys_[i].defined()) continue;
    there.push_back(pass_.as_factor(dys_[i]));
    cuts.push_back(*layers_[i].cut);
  }
  if (spread.own_outputs) there = team.all_columns(there, cuts, "gradients of outputs");
  const std::int64_t in = layers_.front().weight.value.size(1);
  const ColumnCut columns = spread.in ? *spread.in : ColumnCut(in, 1, team.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!dys_[i].defined()) {
      factors_.emplace_back();
      weights_.emplace_back();
      continue;
    }
    factors_.push_back(there[next++]);
    weights_.push_back(team.columns_of_rows(pass_.as_factor(layers_[i].weight.value),
                                            *layers_[i].cut, columns, "weights' columns"));
    if (!spread.own_outputs) dys_[i] = team.own_columns(dys_[i], *layers_[i].cut);
  }
  input_gradient_ = computed_input_gradient();
  if (!spread.in)
    input_gradient_ = team.all_columns(input_gradient_, columns, "gradient of the input");
  weights_.clear();
  factors_.clear();
  for (const at::Tensor& dy : dys_) factors_.push_back(pass_.as_factor(dy));
}

at::Tensor LinearBackward::input_gradient() const {
  return input_gradient_.defined() ? input_gradient_ : computed_input_gradient();
}

at::Tensor LinearBackward::computed_input_gradient() const {
  const at::Tensor* dy = nullptr;
  const at::Tensor* weight = nullptr;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    if (!factors_[i].defined()) continue;
    dy = &factors_[i];
    weight = &weights_[i];
  }
  CHECK(dy != nullptr);
  const at::Tensor dx = at::empty({dy->size(0), weight->size(1)}, dy->options().dtype(at::kFloat));
  std::vector<std::function<void()>> tasks;
  for (const ProductPart& part :
       product_parts(*dy, dx.size(0), dx.size(1), pass_.pool.threads(), kRowsLeast)) {
    tasks.emplace_back([this, part, &dx] {
      bool adds = false;
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (!factors_[i].defined()) continue;
        multiply_part_into(dx, part, factors_[i], weights_[i], adds);
        adds = true;
      }
    });
  }
  run_tasks(pass_.pool, tasks, dx.device());
  return dx;
}

// The gradients of a layer's outputs from which its weights' gradients are computed. They are of
// all rows, and of the outputs whose weights have their gradients on this rank.
at::Tensor LinearBackward::added(std::size_t layer) const {
  const at::Tensor& dy = dys_[layer];
  const ColumnCut* dealt = layers_[layer].dealt.get();
  if (!rows_) return dealt == nullptr ? dy : pass_.team->own_columns(dy, *dealt);
  return dealt == nullptr ? pass_.team->all_rows(dy, *rows_, "gradients of outputs")
                          : pass_.team->columns_of_rows(dy, *rows_, *dealt, "gradients of outputs");
}

void LinearBackward::add_weight_gradients(const at::Tensor& x_rows) const {
  at::Tensor x = pass_.as_factor(x_rows);
  if (rows_) x = pass_.team->all_rows(x, *rows_, "inputs");
  std::vector<std::function<void()>> tasks;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!dys_[i].defined()) continue;
    const bool is_here = !rows_ && layers_[i].dealt == nullptr;
    const at::Tensor dys = is_here ? dys_[i] : added(i);
    const at::Tensor factors = is_here ? factors_[i] : pass_.as_factor(dys);
    if (layers_[i].bias.adds()) {
      tasks.emplace_back([bias = layers_[i].bias, dys] { bias.add_gradient_of_rows(dys); });
    }
    if (!layers_[i].weight.adds()) continue;
    const bool first = layers_[i].weight.sum->begin();
    const at::Tensor& grad = layers_[i].weight.grad;
    for (const ProductPart& part :
         product_parts(factors, grad.size(0), grad.size(1), pass_.pool.threads(), kRowsLeast)) {
      tasks.emplace_back([grad, part, first, dy = factors.t(), &x] {
        multiply_part_into(grad, part, dy, x, !first);
      });
    }
  }
  run_tasks(pass_.pool, tasks, x.device());
}

}  // namespace rl::ops
