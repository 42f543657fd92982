// AdamW over one contiguous arena, and the norm that gradient clipping needs. Plain pointers, no torch.
// Invariant: results depend on the data alone, not on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/model/arena_range.h"

namespace rl {

/// Defaults are verl's.
struct AdamWOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;

  bool operator==(const AdamWOptions&) const = default;
};

/// Adam with decoupled weight decay; Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, in the form that PyTorch computes:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w = w (1 - lr decay);  w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
/// One pass over the four arenas, so the cost is 28 bytes of memory traffic an element.
/// A resource: owns the moments. One thread at a time.
class AdamW {
 public:
  /// `decayed` are the ranges that weight decay applies to, ascending and disjoint, inside [0, size).
  AdamW(std::int64_t size, std::vector<ArenaRange> decayed, const AdamWOptions& options);

  /// One update in place. Every gradient is multiplied by `gradient_scale` first, which is how clipping costs no pass of its own.
  /// Both spans have the arena's size.
  void step(kernel::ThreadPool& pool, std::span<float> parameters, std::span<const float> gradients, float learning_rate,
            float gradient_scale);

  /// Updates made; what bias correction counts.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// The moments, for checkpoints.
  std::span<float> first_moment() { return {first_.get(), static_cast<std::size_t>(size_)}; }
  std::span<float> second_moment() { return {second_.get(), static_cast<std::size_t>(size_)}; }

  const AdamWOptions& options() const { return options_; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  using Buffer = std::unique_ptr<float[], Free>;
  static Buffer zeros(std::int64_t size);

  std::int64_t size_;
  std::vector<ArenaRange> ranges_;  // the whole arena in order: even entries without decay, odd ones with
  AdamWOptions options_;
  Buffer first_;
  Buffer second_;
  std::int64_t steps_ = 0;
};

/// Euclidean norm, accumulated in double; infinity or NaN when any element is. Cost: one read of the data.
double l2_norm(kernel::ThreadPool& pool, std::span<const float> values);

/// The factor that brings a gradient of this norm down to `norm_max`: min(1, norm_max / (norm + 1e-6)). `norm_max` <= 0 means no clipping.
double clip_factor(double norm, double norm_max);

}  // namespace rl
