// PassSharing: how ranks make their passes together.
#pragma once

#include <cstdint>

namespace rl {

/// What ranks that make a pass together divide: the outputs of its products, of which each rank has
/// its part of the weights (tensor parallelism); its rows, for which each rank has the weights
/// whole (sequence parallelism); its rows, and a mixture's experts, each of which is on one rank,
/// where the rows that take it go (expert parallelism); or its layers (pipeline parallelism).
enum class PassCut : std::uint8_t { kOutputs, kRows, kRowsAndExperts, kLayers };

inline bool cuts_rows(PassCut cut) {
  return cut == PassCut::kRows || cut == PassCut::kRowsAndExperts;
}

/// Whether each layer or expert is on one rank, which computes it for the rows of all: an adapter
/// beside it would get its gradient there instead of where the rows are.
inline bool deals_weights(PassCut cut) {
  return cut == PassCut::kRowsAndExperts || cut == PassCut::kLayers;
}

struct PassSharing {
  std::int64_t ranks = 1;  // that share each pass
  PassCut cut = PassCut::kOutputs;

  /// Whether a rank's passes read a part of the weights alone.
  bool cuts_weights() const { return ranks > 1 && cut != PassCut::kRows; }
};

}  // namespace rl
