// AdapterLeaves: an adapter's gradients of a team whose ranks compute parts of them for one
// another.
#pragma once

#include <vector>

#include "rl/mesh/arena_range.h"
#include "rl/mesh/range_set.h"
#include "rl/model/pass_team.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// Whether a rank adds to an adapter's gradients in the passes of the rank at position `turn`. The
/// ranks of a stage compute the same of it, but for the experts that one of them has.
bool adds_to_adapter(const PassTeam& team, int turn);

/// An adapter is whole on each rank, and a rank's gradient of it is that of its leaf. Where layers
/// or experts are on one rank each (PassSharing::deals_weights), the gradients next to them arise
/// there. Behind the passes of a leaf they go to the rank whose leaf it is. That rank thus has the
/// bits of a rank alone. Without such a team, or without an adapter, nothing is done. Memory: one
/// more copy of the adapter's gradients. Of one leaf of each rank of the team; borrows the model.
class AdapterLeaves {
 public:
  explicit AdapterLeaves(Transformer& model);

  /// The passes of the leaf of the rank at that position have been made. Behind those of the last
  /// position the gradients are those of this rank's own leaf. Collective in the team. Errors:
  /// those of Communicator; kResourceExhausted: out of memory.
  runtime::Status end_turn(int turn);

 private:
  // The adapter of one linear layer.
  struct Module {
    ArenaRange a, b;
    int stage = 0;
    int place = kAny;  // of the rank in the stage that has it
  };
  static constexpr int kAny = -1;  // each of the stage computes it

  RangeSet added(int position, int turn) const;
  void collect(int turn);

  Transformer& model_;
  int stage_ranks_ = 1;
  std::vector<Module> modules_;  // empty: nothing is to be done
  std::vector<float> leaf_;      // of this rank
};

}  // namespace rl
