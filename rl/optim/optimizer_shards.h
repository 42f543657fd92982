// OptimizerShards: the part of the arena that a rank's optimizer works on, and the exchanges by
// which all ranks take the whole step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/kernel/thread_pool.h"
#include "rl/mesh/arena_range.h"
#include "rl/mesh/layout.h"
#include "runtime/core/result.h"

namespace rl {

/// The ranges that each of so many ranks keeps the optimizer's state of: even in chunks of
/// kNormChunk, so that the gradient's norm has the same bits as over the whole. The last ones of a
/// small model may be empty.
std::vector<ArenaRange> moment_homes(std::int64_t elements, int ranks);

/// Without sharding every rank takes the whole step, after an all-reduce of the gradients. With
/// ZeroLevel::kMoments each takes it on its home, after a reduce-scatter, and the weights are
/// gathered: as many bytes, and the same bits; Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054.
/// All ranks make the same calls. Borrows the communicator. Errors: those of Communicator.
class OptimizerShards {
 public:
  /// Of an arena of so many elements.
  OptimizerShards(Communicator& communicator, std::int64_t elements, ZeroLevel level);

  bool is_sharded() const { return !homes_.empty(); }
  /// What this rank's optimizer works on: all of the arena unless it is sharded.
  ArenaRange home() const { return home_; }

  /// Adds up the gradients of a round, of the ranks with a 1 in `adds`, behind those of the rounds
  /// before; see GradientRound. Before the last round `gradients` stay as they are.
  runtime::Status add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                            bool last);
  /// All rounds are added up: the gradients are the sum.
  bool is_summed() const { return is_summed_; }
  /// Adds up the gradients of all ranks; not after rounds.
  runtime::Status sum(std::span<float> gradients);

  /// The norm of the sum, the same bits on every rank.
  runtime::Result<double> norm(kernel::ThreadPool& pool, std::span<const float> gradients);

  /// The step is taken: every rank ends with the whole arena's weights.
  runtime::Status share(std::span<float> weights);
  void end_step() { is_summed_ = false; }

  /// Brings values of all homes together on rank 0, in `whole`, which is empty elsewhere.
  runtime::Status collect(std::span<const float> of_home, std::span<float> whole);

 private:
  Communicator& communicator_;
  std::vector<ArenaRange> homes_;  // by rank; empty: not sharded
  ArenaRange home_;
  SumRounds<float> rounds_;
  bool is_summed_ = false;
};

}  // namespace rl
