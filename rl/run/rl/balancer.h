// Balancer: samples go to other workers than drew them, so that all train about as many tokens.
#pragma once

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "runtime/core/result.h"

namespace rl {

class Balancer {
 public:
  Balancer(BatchCalls& batches, bool moves) : batches_(batches), moves_(moves) {}

  /// Counts the tokens as they were drawn, and moves groups where that wins enough.
  runtime::Status balance(StepBatch& batch);

 private:
  BatchCalls& batches_;
  bool moves_;
};

}  // namespace rl
