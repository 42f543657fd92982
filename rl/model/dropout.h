// Dropout of an adapter's inputs; Srivastava et al. 2014. What is dropped is a function of numbers
// that a checkpoint has anyway, the same on every device: there is no random state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "rl/kernel/thread_pool.h"

namespace rl {

/// One pass that trains.
struct DropoutPass {
  std::uint64_t seed = 0;
  std::uint32_t rank = 0;   // of the worker: each drops something else
  std::uint64_t index = 0;  // of the pass

  auto fields() { return std::tie(seed, rank, index); }
};

/// Counts the passes of a model. A value.
class DropoutPasses {
 public:
  void seed(std::uint64_t seed) { next_.seed = seed; }

  /// The passes that follow are those of the optimizer's step after `steps`.
  void begin_step(std::uint32_t rank, std::int64_t steps) {
    next_.rank = rank;
    next_.index = static_cast<std::uint64_t>(steps) << kPassBits;
  }

  const DropoutPass& next() const { return next_; }

  /// The pass that follows is one of another worker, and is not counted; nullopt: it is one of
  /// these.
  void follow(std::optional<DropoutPass> other) { other_ = other; }

  DropoutPass take() {
    if (other_) return *std::exchange(other_, std::nullopt);
    const DropoutPass pass = next_;
    ++next_.index;
    return pass;
  }

 private:
  static constexpr int kPassBits = 24;  // passes of a step: far more than there are

  DropoutPass next_;
  std::optional<DropoutPass> other_;
};

/// x where each element is zero with probability `share` (below 1), and divided by 1 - share
/// otherwise. Element by element by Philox of the pass, the module and the element's place. The
/// mask is drawn on the pool's threads, wherever x is; a byte an element goes to its device. x may
/// be the rows from `first_row` on of a pass.
at::Tensor dropped_out(kernel::ThreadPool& pool, const at::Tensor& x, double share,
                       const DropoutPass& pass, std::uint32_t module, std::int64_t first_row = 0);

}  // namespace rl
