// CreditAssigner: the advantages of responses or of their tokens. They say how much more or less
// likely each is to become. One class per family of estimators; see credit_factory.h for which of
// them a run has.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

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

class CreditAssigner {
 public:
  virtual ~CreditAssigner() = default;

  /// From the samples' rewards. `kl_coefficient`: how much of the KL is in them; 0: none.
  virtual runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                                 StepTimer& timer) = 0;

  /// What steps leave to the next ones: an object with members for the state of a checkpoint. Their
  /// names are this class's alone, since the run's own members stand next to them.
  virtual nlohmann::ordered_json save() const { return nlohmann::ordered_json::object(); }

  /// Goes on from a checkpoint's state, or from what save() gave. It may lack the members of this
  /// class, or have those of others. kInvalidArgument: a value that does not fit; nothing has
  /// changed.
  virtual runtime::Status restore(const nlohmann::ordered_json& state) { return {}; }
};

}  // namespace rl
