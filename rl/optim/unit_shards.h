// UnitShards: ranks that keep gradients, or weights as well, once, unit by unit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/mesh/packed_ranges.h"
#include "rl/model/transformer.h"
#include "rl/optim/step_shards.h"
#include "rl/optim/unit_sums.h"
#include "rl/optim/unit_weights.h"

namespace rl {

/// The homes of a model's units: by rank, of whole chunks of kNormChunk; see unit_homes().
std::vector<RangeSet> homes_of(std::span<const ArenaUnit> units, std::int64_t elements, int ranks,
                               int group);

/// A step on gradients that the passes add up (UnitSums). The optimizer works on the rank's part of
/// the weights, packed, and passes find the new ones (UnitWeights). Borrows everything.
class UnitShards final : public StepShards {
 public:
  UnitShards(Communicator& communicator, Transformer& model, UnitWeights& weights,
             std::span<const ArenaUnit> units, std::span<const RangeSet> homes,
             const TeamParts& teams = {});

  bool is_sharded() const override { return true; }
  const PackedRanges& home() const override;
  std::span<const PackedRanges> homes() const override { return homes_; }
  bool sums_in_passes() const override { return true; }
  void expect_last_pass(std::span<const std::uint8_t> adds, bool last_round,
                        std::size_t passes_before) override {
    sums_.expect_last_pass(adds, last_round, passes_before);
  }
  runtime::Status add_round(std::span<float> gradients, std::span<const std::uint8_t> adds,
                            bool last) override;
  bool is_summed() const override { return sums_.is_complete(); }
  runtime::Status sum(std::span<float> gradients) override;
  runtime::Result<double> norm(kernel::ThreadPool& pool, std::span<const float> gradients) override;
  runtime::Status step(Optimizer& optimizer, kernel::ThreadPool& pool, std::span<float> weights,
                       std::span<const float> gradients, float learning_rate,
                       float gradient_scale) override;
  void end_step() override { sums_.end_step(); }
  runtime::Status collect(std::span<const float> of_home, std::span<float> whole) override;

 private:
  Communicator& communicator_;
  UnitWeights& weights_;
  std::vector<PackedRanges> homes_;  // by rank
  UnitSums sums_;
};

}  // namespace rl
