// The interface of optimizers, AdamW over one contiguous arena, and the norm for gradient clipping.
// Plain pointers, no torch. Invariant: results depend on the data alone, not on the number of
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/mesh/arena_range.h"
#include "runtime/core/status.h"

namespace rl {

/// What an optimizer remembers of each element of the arena, by PyTorch's name for it.
struct OptimizerState {
  std::string name;
  std::span<float> values;
};

/// Updates an arena of parameters in place. A resource: owns its state. One thread at a time.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update. Every gradient is multiplied by `gradient_scale` first, which is how clipping
  /// costs no extra pass. Both spans have the arena's size. Errors: those of Communicator, of
  /// an optimizer whose ranks work together; then parameters and state are unspecified.
  virtual runtime::Status step(kernel::ThreadPool& pool, std::span<float> parameters,
                               std::span<const float> gradients, float learning_rate,
                               float gradient_scale) = 0;

  /// For checkpoints: with these and steps() an optimizer continues where another stood.
  virtual std::vector<OptimizerState> state() = 0;
  virtual std::string_view name() const = 0;

  /// Updates made; what bias correction counts.
  std::int64_t steps() const { return steps_; }
  virtual void set_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  std::int64_t steps_ = 0;
};

/// A stretch of the arena, and whether weight decay applies to it.
struct DecayRange {
  ArenaRange range;
  bool decays = false;
};

/// [0, size) in order, cut at the borders of `decayed` and without `skipped`; both ascending,
/// disjoint and inside.
std::vector<DecayRange> decay_ranges(std::int64_t size, const std::vector<ArenaRange>& decayed,
                                     const std::vector<ArenaRange>& skipped = {});

/// Defaults are verl's.
struct AdamWOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;

  bool operator==(const AdamWOptions&) const = default;
};

/// Adam with decoupled weight decay; Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, in
/// the form that PyTorch computes:
///   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w = w (1 - lr decay);  w -= lr / (1 - b1^t)
///   * m / (sqrt(v / (1 - b2^t)) + eps)
/// One pass over the four arenas, so the cost is 28 bytes of memory traffic an element.
class AdamW final : public Optimizer {
 public:
  /// `decayed` are the ranges that weight decay applies to, `skipped` those that are left as they
  /// are; see decay_ranges().
  AdamW(std::int64_t size, const std::vector<ArenaRange>& decayed, const AdamWOptions& options,
        const std::vector<ArenaRange>& skipped = {});

  runtime::Status step(kernel::ThreadPool& pool, std::span<float> parameters,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override;
  std::vector<OptimizerState> state() override {
    return {{"exp_avg", first_moment()}, {"exp_avg_sq", second_moment()}};
  }
  std::string_view name() const override { return "AdamW"; }

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
  std::vector<DecayRange> ranges_;
  AdamWOptions options_;
  Buffer first_;
  Buffer second_;
};

/// Squares are added up in double, within chunks of N elements.
inline constexpr std::int64_t kNormChunk = std::int64_t{1} << 16;

/// The sum of squares of each chunk; the last one may be smaller.
std::vector<double> square_sums(kernel::ThreadPool& pool, std::span<const float> values);

/// The norm of what these are the sums of squares of, in order.
double norm_of(std::span<const double> square_sums);

/// Euclidean norm, accumulated in double; infinity or NaN when any element is. Cost: one read of
/// the data.
double l2_norm(kernel::ThreadPool& pool, std::span<const float> values);

/// The factor that brings a gradient of this norm down to `norm_max`: min(1, norm_max / (norm +
/// 1e-6)). `norm_max` <= 0 means no clipping.
double clip_factor(double norm, double norm_max);

}  // namespace rl
