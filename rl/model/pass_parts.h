// The part of a model's weights that each rank of a shared pass works with.
#pragma once

#include <span>
#include <vector>

#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/range_set.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "runtime/core/result.h"

namespace rl {

/// The elements of an arena that each rank of a team uses, by position in the team; see
/// PassSharing.
struct PassParts {
  std::vector<RangeSet> used;            // what a rank reads
  std::vector<RangeSet> differentiated;  // what it computes the gradient of: no element has two
};

PassParts pass_parts(const ModelConfig& config, std::span<const ParameterSpec> specs,
                     const PassSharing& sharing);

/// Checks that the ranks can share a pass. kInvalidArgument: the model has fewer key heads, experts
/// or layers than there are ranks to deal them to.
runtime::Status check_pass_parts(const ModelConfig& config, const PassSharing& sharing);

}  // namespace rl
