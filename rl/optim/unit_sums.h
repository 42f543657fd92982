// UnitSums: gradients that are added up over the ranks unit by unit, as backward passes get through
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/comm/communicator.h"
#include "rl/comm/ordered_sum.h"
#include "rl/comm/slice_sums.h"
#include "rl/mesh/packed_ranges.h"
#include "rl/mesh/unit_homes.h"
#include "rl/model/arena_units.h"
#include "rl/model/layer_listener.h"
#include "rl/model/pass_memory.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// Ranks that make their passes together, in teams (PassTeam) of as many ranks each. The rank at
/// position p of team d is p * teams + d.
struct TeamParts {
  /// By position in a team: what a rank there computes the gradient of. Empty: teams of one rank.
  std::vector<RangeSet> differentiated = {};

  int positions() const {
    return differentiated.empty() ? 1 : static_cast<int>(differentiated.size());
  }
};

/// ZeRO-2 (Rajbhandari et al. 2020, arXiv:1910.02054): each rank keeps the sum of its homes alone,
/// packed. What its passes add up has memory only until the unit is through the last one of them.
/// It goes to the homes while the next unit computes. All ranks make the same passes, idle ones
/// where they have no rows. What fails in a pass ends it, with the errors of Communicator. On a
/// device gradients come by pages (GradientMemory), and are summed on the host. Borrows everything.
class UnitSums final : public LayerListener {
 public:
  /// Elements of a unit that goes to the homes in one exchange. They are as many as the buckets of
  /// a larger one take.
  static constexpr std::int64_t kInOneExchange =
      kSumWindow * static_cast<std::int64_t>(Communicator::Options().bucket_bytes / sizeof(float));

  /// `teams`: see TeamParts; without, each rank computes all of a leaf's gradient.
  UnitSums(Communicator& communicator, Transformer& model, std::span<const ArenaUnit> units,
           std::span<const RangeSet> homes, const TeamParts& teams = {});
  ~UnitSums() override;

  /// Behind the next `passes_before` passes comes the last one of this round's leaf. Its backward
  /// pass adds up the leaf with
  /// those of the ranks that have a 1 in `adds`, behind the rounds before. Another call of a step
  /// is another round. Of a team one rank at most has a 1: the one whose leaf its passes were of.
  void expect_last_pass(std::span<const std::uint8_t> adds, bool last_round,
                        std::size_t passes_before = 0);

  /// Whether all rounds of the step are added up.
  bool is_complete() const { return complete_; }
  /// The sum over all rounds, of this rank's homes, packed. Until end_step().
  std::span<const float> sum() const { return sum_; }
  void end_step();

  void before_forward(std::int64_t layer) override;
  void before_backward(std::int64_t layer) override;
  void after_pass() override;

 private:
  // Neighbouring elements that are added up in one operation.
  struct Part {
    HomeSlices slices;
    SumRounds<float> rounds;
    int position = 0;  // of the rank of each team that computes their gradient
  };
  struct Unit {
    ArenaUnit place;
    std::vector<Part> parts;
    bool there = false;  // it has memory
  };

  bool is_adding() const { return !adds_.empty() && passes_before_ == 0; }
  void add_part(Unit& unit, const ArenaRange& range, int position, std::span<const RangeSet> homes);
  std::vector<std::uint8_t> adds_of(int position) const;
  void open(Unit& unit);
  void sum_down_to(int unit);
  void sum(Unit& unit);
  void finish_sum();
  void drop(Unit& unit);

  Communicator& communicator_;
  Transformer& model_;
  const TeamParts teams_;
  const PackedRanges packed_;
  const std::unique_ptr<PassMemory> memory_;
  const std::span<float> arena_;  // of it, on the host
  std::vector<float> sum_;
  std::vector<Unit> units_;
  SliceSums coming_;  // of a small unit, while the passes go on
  Unit* coming_unit_ = nullptr;
  std::vector<std::uint8_t> adds_;  // of the round that is being added up; empty: none is
  bool last_round_ = false;
  std::size_t passes_before_ = 0;  // the one in which it is
  int next_ = 0;                   // of the round: units from here on are added up
  bool complete_ = false;
};

}  // namespace rl
