// The way back through linear layers of one input, on one rank or shared by a PassTeam.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/model/ops.h"
#include "rl/model/parallel.h"
#include "rl/model/pass_options.h"

namespace rl::ops {

/// Fewer rows than this are not worth their own task.
inline constexpr std::int64_t kRowsLeast = 64;

inline at::Tensor rows_of(const at::Tensor& t, const Block& block) {
  return t.narrow(0, block.first, block.count);
}

/// Which of the blocks of N rows each rank of a team has, see rows_of_ranks().
ColumnCut blocks_of_ranks(std::int64_t rows, int ranks);

/// As they are, or dense.
std::vector<at::Tensor> contiguous(const std::vector<at::Tensor>& grads);

/// x with all columns, of which a team's ranks may have their own alone.
at::Tensor whole_input(const PassContext& pass, const at::Tensor& x, const Spread& spread);

/// What layers give for x, as `spread` says.
std::vector<at::Tensor> linear_outputs(const PassContext& pass, const at::Tensor& x,
                                       std::span<const Linear> layers, const Spread& spread);

/// Holds what is multiplied: gradients of outputs, and weights, rounded once where the pass rounds.
/// Borrows the layers. Where a team shares the layers the constructor brings together what the
/// others have, in the same order on all of its ranks.
class LinearBackward {
 public:
  /// `grads`: of each layer's output, undefined where nothing depends on it.
  LinearBackward(const PassContext& pass, std::span<const Linear> layers,
                 const std::vector<at::Tensor>& grads, const Spread& spread);

  /// x's gradient, sum_i dy_i W_i, fp32; of this rank's columns where `spread` says that x had no
  /// others.
  at::Tensor input_gradient() const;

  /// dW += dy^T x and db += sum of dy, for everything that is trained. `x` has all columns. Where
  /// a team's ranks have own rows it brings those of all together, as the constructor does.
  void add_weight_gradients(const at::Tensor& x) const;

 private:
  void share(const Spread& spread);
  at::Tensor added(std::size_t layer) const;
  at::Tensor computed_input_gradient() const;

  const PassContext pass_;
  const std::span<const Linear> layers_;
  const std::shared_ptr<const ColumnCut> rows_;
  std::vector<at::Tensor> dys_;  // of the rank's own outputs
  std::vector<at::Tensor> factors_;
  std::vector<at::Tensor> weights_;
  at::Tensor input_gradient_;  // of a team
};

}  // namespace rl::ops
