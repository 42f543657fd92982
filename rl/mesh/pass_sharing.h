// PassSharing: how ranks make their passes together.
#pragma once

#include <cstdint>

namespace rl {

/// What ranks that compute the same layers divide: the outputs of products, of which each rank has
/// its part of the weights (tensor parallelism); the rows, for which each rank has the weights
/// whole (sequence parallelism); or the rows, and a mixture's experts, each of which is on one
/// rank, where the rows that take it go (expert parallelism).
enum class PassCut : std::uint8_t { kOutputs, kRows, kRowsAndExperts };

inline bool cuts_rows(PassCut cut) {
  return cut == PassCut::kRows || cut == PassCut::kRowsAndExperts;
}

/// A team's ranks make each of their passes together. They are the stages of a pipeline, of which
/// each has some of the layers (pipeline parallelism), and within a stage the ranks divide what
/// `cut` says. The rank at position p of a team is in stage p / ranks, at place p % ranks.
struct PassSharing {
  std::int64_t ranks = 1;           // of a stage
  PassCut cut = PassCut::kOutputs;  // with one rank without effect
  std::int64_t stages = 1;

  std::int64_t team() const { return ranks * stages; }
  /// Whether a rank's passes read a part of the weights alone.
  bool cuts_weights() const { return stages > 1 || (ranks > 1 && cut != PassCut::kRows); }
  /// Whether a layer or expert is computed for the rows of all by the one rank that has it: an
  /// adapter next to it would get its gradient there instead of where the rows are.
  bool deals_weights() const {
    return stages > 1 || (ranks > 1 && cut == PassCut::kRowsAndExperts);
  }
};

}  // namespace rl
