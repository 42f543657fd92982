// WarmStart: supervised steps on demonstrations before the first RL step.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/feed/prompt_feed.h"
#include "rl/metrics/metrics.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/run/run_journal.h"
#include "runtime/core/result.h"

namespace rl {

/// What a warm start asks of the policy.
class WarmStartCalls {
 public:
  virtual ~WarmStartCalls() = default;
  /// By worker: what one pass may take.
  virtual std::vector<MicroBatchLimits> limits() const = 0;
  /// One step; metrics are summed over workers.
  virtual runtime::Result<Metrics> supervise(const std::vector<DemonstrationBatch>& batches,
                                             const std::vector<SupervisedPlan>& plans) = 0;
  virtual runtime::Status reset_optimizer() = 0;
  /// Saves what it has become, for the reference.
  virtual runtime::Status save_reference() = 0;
};

class WarmStart {
 public:
  using Batches = std::function<runtime::Result<DemonstrationStep>()>;

  /// `saves`: a reference begins with what it makes.
  WarmStart(const WarmStartOptions& options, Batches batches, WarmStartCalls& policy, bool saves)
      : options_(options), batches_(std::move(batches)), policy_(policy), saves_(saves) {}

  /// Records each step in the journal. Errors: an alarm's that ends the training; those of calls.
  runtime::Status run(RunJournal& journal);

 private:
  runtime::Result<Metrics> step(std::int64_t index);

  WarmStartOptions options_;
  Batches batches_;
  WarmStartCalls& policy_;
  bool saves_;
};

}  // namespace rl
