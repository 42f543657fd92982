// ExpertsPass: the mixture of experts of a layer, in one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/mesh/column_cut.h"
#include "rl/model/bound_weights.h"
#include "rl/model/model_config.h"
#include "rl/model/ops.h"
#include "rl/model/projector.h"

namespace rl {

/// Of a model with MoeConfig. Borrows everything it is given but `rows`.
class ExpertsPass {
 public:
  /// `project` is of these rows: those of a team's that the rank has; null: all.
  ExpertsPass(const ModelConfig& config, const PassContext& pass, const Projector& project,
              std::shared_ptr<const ColumnCut> rows)
      : config_(config), pass_(pass), project_(project), rows_(std::move(rows)) {}

  /// x [T, hidden], normed -> [T, hidden].
  at::Tensor operator()(const bound::Experts& w, const at::Tensor& x) const;

 private:
  // The rows that take each expert.
  using Takers = std::vector<std::vector<std::int64_t>>;

  at::Tensor scores_of(const bound::Experts& w, const at::Tensor& x) const;
  at::Tensor choose(const bound::Experts& w, const at::Tensor& scores) const;
  std::vector<ColumnCut> counted(const Takers& takers) const;
  at::Tensor by_experts(const bound::Experts& w, const at::Tensor& x, const Takers& takers) const;
  at::Tensor by_owners(const bound::Experts& w, const at::Tensor& x, const Takers& takers) const;
  std::span<const ColumnCut> owned_counts(std::span<const ColumnCut> counts,
                                          const ColumnCut& owned) const;
  bool deals_experts() const;

  const ModelConfig& config_;
  const PassContext& pass_;
  const Projector& project_;
  const std::shared_ptr<const ColumnCut> rows_;
};

}  // namespace rl
