// The angles of rotary position embeddings. Shared by training and generation, so that both see the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/model/model_config.h"

namespace rl {

/// Frequencies of one model's rotary embedding. Immutable; any thread.
class Rope {
 public:
  Rope(const RopeConfig& config, std::int64_t head_dim);

  /// head_dim / 2: pair i is dimensions i and i + half_dim() of a head (Hugging Face's order, not interleaved).
  std::int64_t half_dim() const { return static_cast<std::int64_t>(inverse_frequencies_.size()); }

  /// Radians per token for each pair, [half_dim].
  const std::vector<float>& inverse_frequencies() const { return inverse_frequencies_; }

  /// Writes cos and sin of the angles at `position`, half_dim() floats each. Cost: two transcendental functions a pair.
  void cos_sin(std::int64_t position, float* cos, float* sin) const;

 private:
  std::vector<float> inverse_frequencies_;
};

}  // namespace rl
