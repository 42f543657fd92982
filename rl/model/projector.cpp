#include "rl/model/projector.h"

#include <ATen/TensorOperators.h>

#include "rl/model/pass_team.h"

namespace rl {

using bound::exists;
using bound::LinearAdapter;
using bound::Mlp;
using bound::Norm;
using bound::Projection;

std::vector<at::Tensor> Projector::operator()(const at::Tensor& x, const Projection& layers) const {
  std::vector<at::Tensor> y = ops::linear(pass_, x, layers.bases, own_rows());
  for (std::size_t i = 0; i < layers.adapters.size(); ++i) {
    if (layers.adapters[i].exists())
      y[i] = ops::add(pass_, y[i], adapter_output(x, layers.adapters[i]));
  }
  return y;
}

std::vector<at::Tensor> Projector::normed(const at::Tensor& x, const Norm& norm,
                                          const Projection& layers) const {
  if (!exists(norm)) return (*this)(x, layers);
  return layers.adapted() ? (*this)(ops::norm(pass_, x, norm, own_rows()), layers)
                          : ops::norm_linear(pass_, x, norm, layers.bases, own_rows());
}

std::vector<at::Tensor> Projector::own(const at::Tensor& x, const Norm& norm,
                                       const Projection& layers) const {
  if (!layers.shared()) return normed(x, norm, layers);
  if (!layers.adapted()) {
    const ops::Spread own{.own_outputs = true};
    return exists(norm) ? ops::norm_linear(pass_, x, norm, layers.bases, own)
                        : ops::linear(pass_, x, layers.bases, own);
  }
  std::vector<at::Tensor> y = normed(x, norm, layers);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = ops::own_columns(pass_, y[i], *layers.bases[i].cut);
  return y;
}

at::Tensor Projector::joined(const at::Tensor& x, const std::shared_ptr<const ColumnCut>& in,
                             const Projection& layer) const {
  if (!in) return one(x, layer);
  return layer.adapted() ? one(ops::all_columns(pass_, x, *in), layer)
                         : ops::linear(pass_, x, layer.bases.front(), {.in = in});
}

at::Tensor Projector::activated(kernel::Activation activation, const std::vector<at::Tensor>& in,
                                const Mlp& mlp) const {
  const at::Tensor up = in.size() > 1 ? in[1] : at::Tensor();
  const std::shared_ptr<const ColumnCut>& cut = mlp.in.bases.front().cut;
  if (mlp.down.adapted()) return joined(ops::activate(pass_, activation, in[0], up), cut, mlp.down);
  return ops::activate_linear(pass_, activation, in[0], up, mlp.down.bases.front(),
                              {.in = cut, .rows = rows_});
}

std::int64_t Projector::first_row() const { return rows_ ? rows_->first(pass_.team->rank()) : 0; }

at::Tensor Projector::adapter_output(const at::Tensor& x, const LinearAdapter& layer) const {
  const bool drops = dropout_ && layer.dropout > 0 && layer.a.weight.trained();
  const at::Tensor in =
      drops ? dropped_out(pass_.pool, x, layer.dropout, *dropout_, layer.module, first_row()) : x;
  return ops::linear(pass_, ops::linear(pass_, in, layer.a, own_rows()), layer.b, own_rows()) *
         layer.scale;
}

}  // namespace rl
