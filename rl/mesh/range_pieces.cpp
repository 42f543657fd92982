#include "rl/mesh/range_pieces.h"

#include <algorithm>

namespace rl {

std::vector<ArenaRange> in_pieces(const RangeSet& set, std::int64_t elements) {
  std::vector<ArenaRange> pieces;
  for (const ArenaRange& range : set.ranges())
    for (std::int64_t begin = range.begin; begin < range.end; begin += elements)
      pieces.push_back({begin, std::min(begin + elements, range.end)});
  return pieces;
}

}  // namespace rl
