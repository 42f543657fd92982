// The connections of a rank to its group, its team, and the stages of its pipeline.
#pragma once

#include <memory>

#include "rl/comm/gloo_communicator.h"
#include "rl/comm/rendezvous.h"
#include "rl/comm/training_ranks.h"
#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/zero_level.h"
#include "runtime/core/result.h"

namespace rl {

/// `place`: the rank among all, their number, the name of their group. Returns when all ranks are
/// there, in teams that share passes as `sharing` says. Stages have PipelineLinks where
/// streams_passes() says so. Errors: those of make_gloo_communicator(); kInvalidArgument: teams
/// that do not divide the group.
runtime::Result<TrainingRanks> connect_ranks(const std::shared_ptr<Rendezvous>& rendezvous,
                                             const GlooOptions& place, const PassSharing& sharing,
                                             ZeroLevel zero);

}  // namespace rl
