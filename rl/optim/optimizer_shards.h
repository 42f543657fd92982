// OptimizerShards: the part of the arena that a rank's optimizer works on, and the exchanges by
// which all ranks take the whole step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/kernel/thread_pool.h"
#include "rl/mesh/arena_range.h"
#include "rl/mesh/packed_ranges.h"
#include "rl/mesh/zero_level.h"
#include "rl/optim/compressed_sum.h"
#include "rl/optim/gradient_codec.h"
#include "rl/optim/step_shards.h"
#include "runtime/core/result.h"

namespace rl {

/// The ranges that each of N ranks keeps the optimizer's state of. They are even in chunks of
/// kNormChunk, so that the gradient's norm has the same bits as over the whole. The last ones of a
/// small model may be empty.
std::vector<ArenaRange> moment_homes(std::int64_t elements, int ranks);

/// Without sharding every rank takes the whole step, after an all-reduce of the gradients. With
/// ZeroLevel::kMoments each takes it on its home, after a reduce-scatter, and the weights are
/// gathered. Bytes and bits are the same; Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054. With
/// compression the sum is a CompressedSum, which has no rounds. Borrows the communicator.
class OptimizerShards final : public StepShards {
 public:
  /// `elements`: the size of the arena.
  OptimizerShards(Communicator& communicator, std::int64_t elements, ZeroLevel level,
                  const GradientCompressionOptions& compression = {});

  bool is_sharded() const override { return !ranges_.empty(); }
  const PackedRanges& home() const override { return home_; }
  std::span<const PackedRanges> homes() const override { return homes_; }
  runtime::Status add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                            bool last) override;
  bool is_summed() const override { return is_summed_; }
  runtime::Status sum(std::span<float> gradients) override;
  runtime::Result<double> norm(kernel::ThreadPool& pool, std::span<const float> gradients) override;
  runtime::Status step(Optimizer& optimizer, kernel::ThreadPool& pool, std::span<float> weights,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override;
  void end_step() override { is_summed_ = false; }
  void forget_residual() override;
  runtime::Status collect(std::span<const float> of_home, std::span<float> whole) override;

 private:
  ArenaRange mine() const;

  Communicator& communicator_;
  std::vector<ArenaRange> ranges_;  // by rank; empty: not sharded
  std::vector<PackedRanges> homes_;
  PackedRanges home_;
  SumRounds<float> rounds_;
  std::unique_ptr<CompressedSum> compressed_;  // null: gradients go as they are
  bool is_summed_ = false;
};

}  // namespace rl
