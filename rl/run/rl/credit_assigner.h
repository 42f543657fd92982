// CreditAssigner: the advantages of responses or of their tokens. They say how much more or less
// likely each is to become. One class per family of estimators; see credit_factory.h for which of
// them a run has.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/algo/reward_scaling.h"
#include "rl/batch/batch_plan.h"
#include "rl/metrics/metrics.h"
#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/step_batch.h"
#include "rl/worker/token_estimates.h"
#include "runtime/core/result.h"

namespace rl {

/// The credit of a step's samples; advantages of whole responses are in the samples.
struct Credit {
  bool per_token = false;       // advantages differ within a response: they are in `estimates`
  EstimateRefs estimates = {};  // by worker
  AdvantageScaling scaling = {};
  std::vector<SampleUse> use = {};  // by worker
  Metrics metrics = {};
};

/// What steps leave to the next ones; saved with checkpoints. Each part fills in its own.
struct CreditState {
  double kl_coefficient = 0.0;
  RewardStatistics rewards = {};
  std::vector<std::int64_t> focus = {};  // see CodapoCredit

  bool operator==(const CreditState&) const = default;
};

class CreditAssigner {
 public:
  virtual ~CreditAssigner() = default;

  /// From the samples' rewards. `kl_coefficient`: how much of the KL is in them; 0: none.
  virtual runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                 StepTimer& timer) = 0;

  virtual void save(CreditState& state) const {}
  virtual void restore(const CreditState& state) {}
};

}  // namespace rl
