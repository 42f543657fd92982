// ResponseCredit: one advantage per response, by a formula over the step's rewards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "rl/algo/custom_advantage.h"
#include "rl/run/rl/credit_assigner.h"

namespace rl {

/// The advantage of each sample, in the order of StepBatch::all().
using ResponseFormula = std::function<runtime::Result<std::vector<float>>(const StepBatch& batch)>;

/// A response's reward against those of its group.
ResponseFormula group_formula(AdvantageEstimator estimator, bool normalize_by_std);

/// A function that the user has registered.
ResponseFormula custom_formula(CustomAdvantages advantages);

/// GDPO: each of the numbers that make up a reward by itself.
ResponseFormula component_formula(std::vector<double> weights, bool normalize_by_std);

/// DisCO: right or wrong.
ResponseFormula label_formula();

class ResponseCredit : public CreditAssigner {
 public:
  explicit ResponseCredit(ResponseFormula formula) : formula_(std::move(formula)) {}

  runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                         StepTimer& timer) override;

 private:
  ResponseFormula formula_;
};

/// Puts a list in the order of StepBatch::all() into the samples.
void put_advantages(StepBatch& batch, const std::vector<float>& advantages);

}  // namespace rl
