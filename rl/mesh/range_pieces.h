// The ranges of a set, cut into pieces.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/mesh/range_set.h"

namespace rl {

/// In order, of at most `elements` each, which is positive.
std::vector<ArenaRange> in_pieces(const RangeSet& set, std::int64_t elements);

}  // namespace rl
