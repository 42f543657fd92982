// Layout: which elements each rank of a mesh computes with, and which it keeps.
#pragma once

#include <vector>

#include "rl/mesh/address_space.h"
#include "rl/mesh/deal.h"
#include "rl/mesh/mesh.h"
#include "rl/mesh/range_set.h"
#include "runtime/core/result.h"

namespace rl {

/// What is kept once per group of ranks instead of on every rank that computes with it;
/// Rajbhandari et al. 2020, "ZeRO", arXiv:1910.02054. 3 is FSDP with reshard_after_forward.
enum class ZeroLevel { kNone = 0, kMoments = 1, kGradients = 2, kWeights = 3 };

/// By rank. `home` of something are the elements that a rank owns: they survive a step there.
struct Layout {
  std::vector<RangeSet> used;  // what the rank's passes read
  std::vector<RangeSet> weights_home;
  std::vector<RangeSet> gradients_home;
  std::vector<RangeSet> moments_home;

  bool operator==(const Layout&) const = default;
};

/// The facts of a model that a mesh must fit.
struct ModelUnits {
  // Which units are the layers: first to last - 1. What is before belongs to the first stage, what
  // is behind to the last one.
  int first_layer = 1;
  int last_layer = 1;
  bool tied = false;  // the last stage computes with unit 0 as well
};

/// kInvalidArgument: more stages than layers, blocks that the tensor axis does not divide, more
/// expert-parallel ranks than experts. Names the numbers; keys are the caller's.
runtime::Result<Layout> layout_of(const AddressSpace& space, const ModelUnits& units,
                                  const Mesh& mesh, ZeroLevel level);

/// The layers of a stage, as units.
Dealt<int> stage_layers(const ModelUnits& units, const Mesh& mesh, int stage);

}  // namespace rl
