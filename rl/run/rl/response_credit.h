// ResponseCredit: one advantage per response, by a ResponseEstimator.
#pragma once

#include <utility>
#include <vector>

#include "rl/algo/response_estimator.h"
#include "rl/run/rl/credit_assigner.h"

namespace rl {

class ResponseCredit : public CreditAssigner {
 public:
  ResponseCredit(const ResponseEstimator& estimator, ResponseSettings settings)
      : estimator_(estimator), settings_(std::move(settings)) {}

  runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                         StepTimer& timer) override;

 private:
  const ResponseEstimator& estimator_;
  ResponseSettings settings_;
};

/// What estimators of responses see of a step, in the order of StepBatch::all(). Values of prompts
/// are not among it.
ScoredResponses scored_responses(const StepBatch& batch);

/// Puts a list in the order of StepBatch::all() into the samples.
void put_advantages(StepBatch& batch, const std::vector<float>& advantages);

}  // namespace rl
