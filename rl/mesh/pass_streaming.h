// The choice of one pass or several in flight over the stages of a pipeline.
#pragma once

#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/zero_level.h"

namespace rl {

/// Stages of one rank each have several passes in flight. At level 3 they have one, since all ranks
/// gather a unit together, in each pass.
inline bool streams_passes(const PassSharing& sharing, ZeroLevel zero) {
  return sharing.stages > 1 && sharing.ranks == 1 && zero != ZeroLevel::kWeights;
}

}  // namespace rl
