// The critic role: predicts what a response will be worth from each of its tokens on, and learns
// to. A separate model with one output a token.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "rl/batch/rollout_batch.h"
#include "rl/comm/communicator.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/learner.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/token_estimates.h"
#include "rl/worker/update_loop.h"
#include "runtime/core/result.h"

namespace rl {

/// One data-parallel rank. Ranks call the same methods in the same order; update() is collective. A
/// resource; one thread at a time.
class CriticWorker {
 public:
  /// Loads the model, its output layer replaced by a head that begins at random unless the folder
  /// has one. Errors: those of Transformer::load.
  static runtime::Result<std::unique_ptr<CriticWorker>> create(const CriticOptions& options,
                                                               TrainingRanks ranks);

  /// Values under the present weights, and what follows from them. Errors: those of response_values
  /// and estimate_tokens.
  runtime::Result<TokenEstimates> estimate(const RolloutBatch& batch,
                                           std::span<const float> reference_logprobs,
                                           const EstimateTask& task);

  /// options.epochs passes over the mini-batches, an optimizer step each. Returns "critic/..."
  /// metrics as this worker's part of the step's means. kInvalidArgument: sizes that do not fit.
  /// Others: those of Learner::apply.
  runtime::Result<Metrics> update(const RolloutBatch& batch, const TokenEstimates& estimates,
                                  const UpdatePlan& plan);

  /// What one of its passes may take: what its micro-batches are cut by.
  PassLimits pass_limits() const {
    return {.learning = options_.micro_batch, .scoring = options_.scoring_batch};
  }

  /// See Learner.
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder) {
    return learner_.save(folder);
  }
  runtime::Result<bool> agree_on_parts(const std::filesystem::path& root) {
    return learner_.agree_on_parts(root);
  }
  runtime::Status collect_state() { return learner_.collect_state(); }
  void snapshot(std::unique_ptr<LearnerSnapshot>& into) { learner_.snapshot(into); }
  runtime::Result<std::vector<std::filesystem::path>> write(
      const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
    return snapshot.write(folder);
  }
  runtime::Status load(const std::filesystem::path& folder) { return learner_.load(folder); }
  runtime::Status check_weights() { return learner_.check_equal_weights(); }

  const Learner& learner() const { return learner_; }

 private:
  CriticWorker(const CriticOptions& options, std::unique_ptr<Transformer> model,
               TrainingRanks ranks);

  CriticOptions options_;
  Learner learner_;
  std::string head_;
  double peak_flops_;  // measured at the beginning
};

}  // namespace rl
