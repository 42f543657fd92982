// The units of a model's arena: what of it a pass reads, and gives gradients to, together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rl/mesh/range_set.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"

namespace rl {

/// Unit 0 has the embeddings, unit 1 + i layer i, the last one the last norm, the output layer and
/// heads.
struct ArenaUnit {
  std::string name;  // "layer 3"
  RangeSet own;      // each element of the arena is in one unit, gaps with what is before them
  RangeSet read;     // what passes read there: `own`, and tied embeddings in the last one

  /// The elements of another unit that are read there: tied embeddings.
  RangeSet borrowed() const { return read.without(own); }
};

/// The elements of the largest layer: `size_of(unit)` at most. The first and the last unit are
/// none.
template <class SizeOf>
std::int64_t largest_layer(std::span<const ArenaUnit> units, const SizeOf& size_of) {
  std::int64_t largest = 0;
  for (std::size_t unit = 1; unit + 1 < units.size(); ++unit)
    largest = std::max(largest, size_of(units[unit]));
  return largest;
}

/// The units of an arena with the layout of that model's parameters.
std::vector<ArenaUnit> arena_units(const ModelConfig& config, std::span<const ParameterSpec> specs);

}  // namespace rl
