// StepShards: the division of an optimizer step over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/mesh/packed_ranges.h"
#include "rl/optim/optimizer.h"
#include "runtime/core/result.h"

namespace rl {

/// Who adds up which gradients, and whose optimizer works on what. Arenas are given to the calls;
/// an implementation may do without (see sums_in_passes()). All ranks make the same calls. Errors:
/// those of Communicator.
class StepShards {
 public:
  virtual ~StepShards() = default;

  /// Whether the ranks keep the optimizer's state once.
  virtual bool is_sharded() const = 0;
  /// What this rank's optimizer works on, packed: all of the arena unless it is sharded.
  virtual const PackedRanges& home() const = 0;
  /// The homes of all ranks; empty: each has all of the arena.
  virtual std::span<const PackedRanges> homes() const = 0;

  /// Whether the passes themselves add up gradients, so that they must be told which is the last
  /// one of a leaf. The calls below then look at no gradients.
  virtual bool sums_in_passes() const { return false; }
  virtual void expect_last_pass(std::span<const std::uint8_t> /*adds*/, bool /*last_round*/,
                                std::size_t /*passes_before*/) {}

  /// Adds up the gradients of a round, of the ranks with a 1 in `adds`, behind those of the rounds
  /// before; see GradientRound. Before the last round `gradients` stay as they are.
  virtual runtime::Status add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                                    bool last) = 0;
  /// All rounds are added up.
  virtual bool is_summed() const = 0;
  /// Adds up the gradients of all ranks; not after rounds.
  virtual runtime::Status sum(std::span<float> gradients) = 0;

  /// The norm of the sum, the same bits on every rank.
  virtual runtime::Result<double> norm(kernel::ThreadPool& pool,
                                       std::span<const float> gradients) = 0;

  /// Takes the step: every rank's passes go through the new weights.
  virtual runtime::Status step(Optimizer& optimizer, kernel::ThreadPool& pool,
                               std::span<float> weights, std::span<const float> gradients,
                               float learning_rate, float gradient_scale) = 0;
  virtual void end_step() = 0;
  /// Forgets what a compressed sum has yet to send.
  virtual void forget_residual() {}

  /// Brings packed values of all homes together on rank 0, in `whole`, which is empty elsewhere.
  virtual runtime::Status collect(std::span<const float> of_home, std::span<float> whole) = 0;
};

}  // namespace rl
