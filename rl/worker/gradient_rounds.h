// The rounds of an optimizer step whose gradient is a sum of leaves.
#pragma once

#include <functional>
#include <span>

#include "rl/batch/batch_plan.h"
#include "rl/optim/learner.h"
#include "runtime/core/result.h"

namespace rl {

/// Some of a worker's micro-batches, of which a team's ranks make the passes together. They are
/// those of the rank at position `turn`. The others bring in as many of their own, which wait for
/// their turn. kTogether: each pass has those of all ranks.
using LearnTurn =
    std::function<runtime::Status(std::span<const MicroBatch> micro_batches, int turn)>;

/// Calls `learn` with the micro-batches of each round, and adds the rounds up; without rounds once,
/// with all. Where ranks share passes it does so for each of a team in turn. Without rounds they
/// learn together where they can (JointPass), since then no sum is one worker's. `wanted` are the
/// outputs of the passes. Errors: those of `learn` and of Learner::add_round; kInvalidArgument:
/// rounds that are not of these micro-batches.
runtime::Status learn_in_rounds(Learner& learner, std::span<const MicroBatch> micro_batches,
                                std::span<const GradientRound> rounds, const OutputOptions& wanted,
                                const LearnTurn& learn);

}  // namespace rl
