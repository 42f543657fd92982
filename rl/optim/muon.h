// Muon: matrices move along their momentum made orthogonal, everything else by AdamW.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rl/optim/matrix_exchange.h"
#include "rl/optim/muon_options.h"
#include "rl/optim/optimizer.h"
#include "runtime/core/result.h"

namespace rl {

/// Jordan 2024; the scale of updates and the decay as in Liu et al. 2025, arXiv:2502.16982, section
/// 2.2. The state is AdamW's: where a matrix is, exp_avg holds its momentum. A rank keeps what is
/// at its home alone. The rank that a matrix is dealt to makes it orthogonal as a whole
/// (MatrixExchange), so that the numbers are those of one rank. Cost of a matrix: 5 iterations of 3
/// products. Memory: its matrix and as much as orthogonalize() needs.
class Muon final : public Optimizer {
 public:
  /// `decayed` are places of the home, and with `adamw` for the rest, as in AdamW.
  Muon(MatrixExchange exchange, const std::vector<ArenaRange>& decayed, const MuonOptions& options,
       const AdamWOptions& adamw);

  /// All ranks call it. Errors: those of Communicator.
  runtime::Status step(kernel::ThreadPool& pool, std::span<float> parameters,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override;
  std::vector<OptimizerState> state() override { return rest_.state(); }
  std::string_view name() const override { return "Muon"; }
  void set_steps(std::int64_t steps) override;

 private:
  class Step;

  MatrixExchange exchange_;
  MuonOptions options_;
  AdamW rest_;
};

}  // namespace rl
