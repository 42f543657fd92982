// Rotary position embeddings of one model. Shared by training and generation, so that both see the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rl/model/model_config.h"

namespace rl {

/// Cosines and sines of the angles at positions 0 .. positions - 1, each [positions, half_dim]. Immutable once made.
struct RopeTables {
  std::int64_t positions = 0;
  std::vector<float> cos;
  std::vector<float> sin;
};

/// The frequencies, and tables that grow with the longest sequence seen. Any thread.
class Rope {
 public:
  Rope(const RopeConfig& config, std::int64_t head_dim);

  Rope(const Rope&) = delete;
  Rope& operator=(const Rope&) = delete;

  /// head_dim / 2: pair i is dimensions i and i + half_dim() of a head (Hugging Face's order, not interleaved).
  std::int64_t half_dim() const { return static_cast<std::int64_t>(inverse_frequencies_.size()); }

  /// Radians per token of each pair, [half_dim].
  const std::vector<float>& inverse_frequencies() const { return inverse_frequencies_; }

  /// Tables of at least `positions` rows. Cost: nothing when such tables exist, else two transcendental functions an element.
  std::shared_ptr<const RopeTables> tables(std::int64_t positions) const;

 private:
  std::vector<float> inverse_frequencies_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const RopeTables> tables_;
};

}  // namespace rl
