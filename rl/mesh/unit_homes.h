// The homes of an arena that ranks gather, and add gradients up in, unit by unit: what each rank
// keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/mesh/range_set.h"

namespace rl {

/// By rank: of each unit an even share of its chunks. A chunk belongs to the unit of its first
/// element, and is never cut. Sums by chunks thus have the same bits on any number of ranks.
/// Together the units are the arena. Each of `group` neighbouring ranks has a place in their group.
/// A unit's chunks are dealt in order to the places, and those of a place to the groups.
std::vector<RangeSet> unit_homes(std::span<const RangeSet> units, std::int64_t elements,
                                 std::int64_t chunk, int ranks, int group);

/// By rank: what it has where each group keeps all homes, so that every element has a copy in each.
/// It contains the rank's home.
std::vector<RangeSet> group_homes(std::span<const RangeSet> homes, int group);

/// Neighbouring elements of which each rank keeps one range, by rank; some are empty.
using HomeSlices = std::vector<ArenaRange>;

/// The homes within `range`, cut where a rank would have a second one: all of it, in order.
std::vector<HomeSlices> slices_of(ArenaRange range, std::span<const RangeSet> homes);

}  // namespace rl
