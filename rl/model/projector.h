// Projector: linear layers of a pass, with the adapters that stand next to them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/model/bound_weights.h"
#include "rl/model/dropout.h"
#include "rl/model/ops.h"

namespace rl {

/// A value; x and y are [T, width] of the rows that the rank has.
class Projector {
 public:
  /// Adapters' inputs are dropped in a pass that trains, and in none without one. `rows`: of a
  /// team's that the rank has; null: all.
  Projector(const PassContext& pass, const std::optional<DropoutPass>& dropout,
            std::shared_ptr<const ColumnCut> rows)
      : pass_(pass), dropout_(dropout), rows_(std::move(rows)) {}

  /// Whether any rank has a row; `own`: how many this rank has.
  bool any(std::size_t own) const { return rows_ ? rows_->total() > 0 : own > 0; }

  /// The same of other rows.
  Projector with(std::shared_ptr<const ColumnCut> rows) const {
    return {pass_, dropout_, std::move(rows)};
  }

  std::vector<at::Tensor> operator()(const at::Tensor& x, const bound::Projection& layers) const;
  at::Tensor one(const at::Tensor& x, const bound::Projection& layer) const {
    return (*this)(x, layer).front();
  }

  /// The layers of a block's normed input.
  std::vector<at::Tensor> normed(const at::Tensor& x, const bound::Norm& norm,
                                 const bound::Projection& layers) const;

  /// The same, of a team the rank's own columns.
  std::vector<at::Tensor> own(const at::Tensor& x, const bound::Norm& norm,
                              const bound::Projection& layers) const;

  /// A layer of what a team's ranks have own columns of.
  at::Tensor joined(const at::Tensor& x, const std::shared_ptr<const ColumnCut>& in,
                    const bound::Projection& layer) const;

  /// `in` is gate and up, or up alone, as own() gives them.
  at::Tensor activated(kernel::Activation activation, const std::vector<at::Tensor>& in,
                       const bound::Mlp& mlp) const;

  /// All of an MLP of what needs no norm.
  at::Tensor mlp(kernel::Activation activation, const at::Tensor& x, const bound::Mlp& mlp) const {
    return activated(activation, own(x, {}, mlp.in), mlp);
  }

 private:
  ops::Spread own_rows() const { return {.rows = rows_}; }
  std::int64_t first_row() const;
  at::Tensor adapter_output(const at::Tensor& x, const bound::LinearAdapter& layer) const;

  const PassContext pass_;
  const std::optional<DropoutPass> dropout_;
  const std::shared_ptr<const ColumnCut> rows_;
};

}  // namespace rl
