// Rotary position embeddings of one model. Shared by training and generation, so that both see the
// same bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "rl/model/rope_config.h"

namespace rl {

/// Cosines and sines of the angles at positions 0 .. positions - 1, each [positions, half].
/// Immutable once made.
struct RopeTables {
  /// What device_tables() made of them; goes when they do.
  class OnDevices;

  std::int64_t half = 0;  // of the rotated dimensions
  std::int64_t positions = 0;
  std::vector<float> cos;
  std::vector<float> sin;
  mutable std::shared_ptr<OnDevices> on_devices = {};
};

/// The frequencies, and tables that grow with the longest sequence seen. Any thread.
///
/// Most kinds turn a position by the same angle in any sequence. Dynamic and longrope scaling do
/// not: beyond the context that the model was trained with, the angles depend on how long the
/// sequence is. Such lengths form stretches, each with its own tables.
class Rope {
 public:
  /// `rotary_dim` (even) is how many dimensions of a head turn; 0: none, for models with other
  /// positions.
  Rope(const RopeConfig& config, std::int64_t rotary_dim);

  Rope(const Rope&) = delete;
  Rope& operator=(const Rope&) = delete;

  /// rotary_dim / 2: pair i is dimensions i and i + half_dim() of a head (Hugging Face's order, not
  /// interleaved).
  std::int64_t half_dim() const { return rotary_dim_ / 2; }

  /// Which angles a sequence of that many tokens has; 0: those of a short one.
  std::int64_t stretch_of(std::int64_t length) const;

  /// Radians per token of each pair, [half_dim].
  std::vector<float> inverse_frequencies(std::int64_t stretch = 0) const;

  /// Tables of at least `positions` rows. Cost: nothing when such tables exist, else two
  /// transcendental functions an element.
  std::shared_ptr<const RopeTables> tables(std::int64_t positions, std::int64_t stretch = 0) const;

 private:
  const RopeConfig config_;
  const std::int64_t rotary_dim_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, std::shared_ptr<const RopeTables>> tables_;  // by stretch
};

}  // namespace rl
