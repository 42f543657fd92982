// Stochastic gradient descent over one contiguous arena. Plain pointers, no torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/optim/optimizer.h"

namespace rl {

struct SgdOptions {
  float momentum = 0.0F;  // in [0, 1)
  bool nesterov = false;  // looks ahead along the momentum
  float weight_decay = 0.0F;

  bool operator==(const SgdOptions&) const = default;
};

/// As PyTorch computes it: g += decay w;  b = momentum b + g (b = g at first);  w -= lr (nesterov ?
/// g + momentum b : b). Without momentum it has no state at all.
class Sgd final : public Optimizer {
 public:
  /// `decayed` as in AdamW.
  Sgd(std::int64_t size, const std::vector<ArenaRange>& decayed, const SgdOptions& options);

  runtime::Status step(kernel::ThreadPool& pool, std::span<float> parameters,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override;
  std::vector<OptimizerState> state() override;
  std::string_view name() const override { return "SGD"; }

 private:
  std::vector<DecayRange> ranges_;
  SgdOptions options_;
  std::vector<float> momentum_;  // empty without
  std::int64_t size_;
};

}  // namespace rl
