// Muon: matrices move along their momentum made orthogonal, everything else by AdamW.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/optim/optimizer.h"

namespace rl {

struct MuonOptions {
  float momentum = 0.95F;
  bool nesterov = true;
  int iterations = 5;          // of Newton-Schulz
  bool match_adamw = true;     // updates as large as AdamW's (0.2 in root mean square), so that one
                               // learning rate serves both; else sqrt(max(1, rows / columns))
  float weight_decay = 0.01F;  // of the matrices

  bool operator==(const MuonOptions&) const = default;
};

/// A matrix in the arena, row-major.
struct ArenaMatrix {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// The nearest orthogonal matrix, about: singular values come out between 0.7 and 1.2. `matrix` is
/// row-major and replaced. Five coefficients' quintic Newton-Schulz iteration in fp32; Jordan 2024,
/// https://kellerjordan.github.io/posts/muon.
void orthogonalize(std::span<float> matrix, std::int64_t rows, std::int64_t columns,
                   int iterations);

/// Jordan 2024; the scale of updates and the decay as in Liu et al. 2025, arXiv:2502.16982,
/// section 2.2. The state is AdamW's: where a matrix is, exp_avg holds its momentum. Cost of a
/// matrix: 5 iterations of 3 matrix products.
class Muon final : public Optimizer {
 public:
  /// `matrices` ascending and disjoint; `decayed` and `adamw` are for the rest, as in AdamW.
  Muon(std::int64_t size, std::vector<ArenaMatrix> matrices, const std::vector<ArenaRange>& decayed,
       const MuonOptions& options, const AdamWOptions& adamw);

  void step(kernel::ThreadPool& pool, std::span<float> parameters, std::span<const float> gradients,
            float learning_rate, float gradient_scale) override;
  std::vector<OptimizerState> state() override { return rest_.state(); }
  std::string_view name() const override { return "Muon"; }
  void set_steps(std::int64_t steps) override;

 private:
  std::vector<ArenaMatrix> matrices_;
  MuonOptions options_;
  AdamW rest_;
};

}  // namespace rl
