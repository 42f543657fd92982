// CodapoCredit: CoDaPO's two phases. After each step on prompts of the data comes one on fresh
// samples for those of them that have most to teach; arXiv:2606.07950.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rl/algo/response_estimator.h"
#include "rl/run/rl/credit_assigner.h"

namespace rl {

struct CodapoCreditOptions {
  std::int64_t top_k = 4;
  std::int64_t batch_prompts = 1;
  std::int64_t data_rows = 0;  // of the training data
  ResponseSettings settings = {};
};

class CodapoCredit : public CreditAssigner {
 public:
  CodapoCredit(const ResponseEstimator& estimator, CodapoCreditOptions options)
      : estimator_(estimator), options_(std::move(options)) {}

  runtime::Status assign(StepBatch& batch, double kl_coefficient, Credit& credit,
                         StepTimer& timer) override;
  /// The focus. Errors: it is of rows that the data do not have.
  nlohmann::ordered_json save() const override;
  runtime::Status restore(const nlohmann::ordered_json& state) override;

  /// The rows of the data that the next step is of; empty: it takes the next ones.
  const std::vector<std::int64_t>& focus() const { return focus_; }

 private:
  void choose_focus(const StepBatch& batch, const std::vector<double>& values, Metrics& metrics);

  const ResponseEstimator& estimator_;
  CodapoCreditOptions options_;
  std::vector<std::int64_t> focus_;
};

}  // namespace rl
