// Balancer: samples go to other workers than generated them, so that all train about as many
// tokens, or each the leaves that are its own.
#pragma once

#include <cstdint>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

class Balancer {
 public:
  /// `moves`: evens tokens out. `leaves`: that each mini-batch is cut into, see GradientRound; 0:
  /// it is not.
  Balancer(BatchCalls& batches, bool moves, std::int64_t leaves = 0)
      : batches_(batches), moves_(moves), leaves_(leaves) {}

  /// Counts the tokens as they were generated, and moves groups: to the workers of their leaves, or
  /// where that wins enough.
  runtime::Status balance(StepBatch& batch);

 private:
  runtime::Status move(StepBatch& batch, const BalancedShards& to);

  BatchCalls& batches_;
  bool moves_;
  std::int64_t leaves_;
};

}  // namespace rl
