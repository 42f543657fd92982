// Activation checkpointing; Chen et al. 2016, arXiv:1604.06174.
#pragma once

namespace rl {

/// While it lives with `on`, passes on this thread keep for backward what enters each layer, and
/// compute the layer again when its gradient is due: the same values and gradients, for one more
/// forward pass and the memory of a single layer's activations. They nest. Where no graph is built
/// it changes nothing.
class RecomputeLayers {
 public:
  explicit RecomputeLayers(bool on);
  ~RecomputeLayers();
  RecomputeLayers(const RecomputeLayers&) = delete;
  RecomputeLayers& operator=(const RecomputeLayers&) = delete;

  /// Whether one is alive with `on`.
  static bool in_use();

 private:
  bool before_;
};

}  // namespace rl
