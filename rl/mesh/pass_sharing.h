// PassSharing: the division of a pass over the ranks of a team.
#pragma once

#include <cstdint>

namespace rl {

/// What ranks that compute the same layers divide.
///
/// - kOutputs: the outputs of products. Each rank has its part of the weights (tensor parallelism).
/// - kRows: the rows. Each rank has the weights whole (sequence parallelism).
/// - kRowsAndExperts: the rows, and a mixture's experts. Each expert is on one rank, where the rows
///   that take it go (expert parallelism).
enum class PassCut : std::uint8_t { kOutputs, kRows, kRowsAndExperts };

inline bool cuts_rows(PassCut cut) {
  return cut == PassCut::kRows || cut == PassCut::kRowsAndExperts;
}

/// A team's ranks make each of their passes together. They are the stages of a pipeline, each with
/// some of the layers (pipeline parallelism). Within a stage the ranks divide what `cut` says. The
/// rank at position p of a team is in stage p / ranks, at place p % ranks. A stage has `chunks`
/// stretches of neighbouring layers, with those of the other stages in between (interleaved stages;
/// Narayanan et al. 2021, arXiv:2104.04473, section 2.2).
struct PassSharing {
  std::int64_t ranks = 1;           // of a stage
  PassCut cut = PassCut::kOutputs;  // with one rank without effect
  std::int64_t stages = 1;
  std::int64_t chunks = 1;  // of a stage; with one stage without effect

  std::int64_t team() const { return ranks * stages; }
  /// Whether a rank's passes read a part of the weights alone.
  bool cuts_weights() const { return stages > 1 || (ranks > 1 && cut != PassCut::kRows); }
  /// Whether the one rank that has a layer or expert computes it for the rows of all. An adapter
  /// next to it would get its gradient there instead of where the rows are.
  bool deals_weights() const {
    return stages > 1 || (ranks > 1 && cut == PassCut::kRowsAndExperts);
  }
};

}  // namespace rl
