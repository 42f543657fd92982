// Whether the stages of a pipeline have several passes in flight.
#pragma once

#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/zero_level.h"

namespace rl {

/// Those of one rank each have. At level 3 they have not, since all ranks gather a unit together,
/// in each pass.
inline bool streams_passes(const PassSharing& sharing, ZeroLevel zero) {
  return sharing.stages > 1 && sharing.ranks == 1 && zero != ZeroLevel::kWeights;
}

}  // namespace rl
