// The policy's learning half: estimates, updates, and what is saved of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/comm/communicator.h"
#include "rl/metrics/metrics.h"
#include "rl/optim/learner.h"
#include "rl/worker/passes.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/token_estimates.h"
#include "rl/worker/update_loop.h"
#include "runtime/core/result.h"

namespace rl {

/// The model with what training puts on it: a critic's head, an adapter. Errors: those of
/// Transformer::load and LoraAdapter.
runtime::Result<std::unique_ptr<Transformer>> load_policy(const PolicyOptions& options,
                                                          const TrainingRanks& ranks);

/// One data-parallel rank: a Transformer (or an adapter on one) and its optimizer. With
/// options.critic the Transformer has a value head, too, which learns in the same passes. Ranks
/// call the same methods in the same order; update(), supervise() and check_weights() are
/// collective. A resource; one thread at a time.
class PolicyLearner {
 public:
  /// Of load_policy()'s model.
  PolicyLearner(const PolicyOptions& options, std::unique_ptr<Transformer> model,
                TrainingRanks ranks);

  /// What perf/mfu is a share of; once all that is alive with the learner has taken its memory.
  void measure_peak_flops();

  /// Advantages of the samples' tokens: by the critic on this backbone, or from rewards alone where
  /// options.estimates names such an estimator. kInvalidArgument: GAE, and options.critic is
  /// nothing; those of estimate_tokens.
  runtime::Result<TokenEstimates> estimate(const RolloutBatch& batch,
                                           std::span<const float> reference_logprobs,
                                           const EstimateTask& task);

  /// PPO's policy update: options.epochs passes over the mini-batches, an optimizer step each.
  /// `reference_logprobs` and `teacher_logprobs` belong to the learned tokens, and are empty unless
  /// the objective has a KL loss or a teacher. Advantages are the plan's, per sample, or a
  /// critic's, per token. A critic on this backbone learns its returns in the same passes, so that
  /// its gradient reaches the backbone. Returns "actor/..." (and "critic/...", "distillation/...")
  /// metrics as this worker's part of the step's means: summed over the workers they are the whole.
  /// kInvalidArgument: sizes that do not fit. Others: those of Learner::apply.
  runtime::Result<Metrics> update(const RolloutBatch& batch,
                                  std::span<const float> reference_logprobs, const UpdatePlan& plan,
                                  const TokenEstimates& estimates = {},
                                  std::span<const float> teacher_logprobs = {});

  /// One supervised step on the responses of `batch`: mean over the plan's response tokens of all
  /// workers. Returns "sft/..." metrics, parts as in update().
  runtime::Result<Metrics> supervise(const DemonstrationBatch& batch, const SupervisedPlan& plan);

  /// What one of its passes may take: what its micro-batches are cut by.
  PassLimits pass_limits() const {
    return {.learning = options_.micro_batch, .scoring = options_.scoring_batch};
  }

  /// Log-probabilities of the learned tokens under the present weights, at the training
  /// temperature. `micro_batches`: its passes over the samples; none: one.
  runtime::Result<std::vector<float>> logprobs(const RolloutBatch& batch,
                                               std::span<const MicroBatch> micro_batches = {});

  /// Collective; see Learner::check_equal_weights.
  runtime::Status check_weights() { return learner_.check_equal_weights(); }
  std::uint64_t weights_checksum() const { return learner_.weights_checksum(); }

  /// Writes what Learner::save does, and the tokenizer next to the model, so that the folder
  /// generates as it is.
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder);
  /// The same as a copy, and written: see Learner::snapshot(). Written on any thread, while the
  /// worker is at work.
  runtime::Result<bool> agree_on_parts(const std::filesystem::path& root) {
    return learner_.agree_on_parts(root);
  }
  runtime::Status collect_state() { return learner_.collect_state(); }
  void snapshot(std::unique_ptr<LearnerSnapshot>& into) { learner_.snapshot(into); }
  runtime::Result<std::vector<std::filesystem::path>> write(
      const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const;
  /// See Learner.
  runtime::Status load(const std::filesystem::path& folder) { return learner_.load(folder); }
  void reset_optimizer() { learner_.reset_optimizer(); }

  const Learner& learner() const { return learner_; }
  Learner& learner() { return learner_; }

 private:
  struct Update;  // what one update() goes through

  runtime::Status weigh(Update& update, const MiniBatch& mini_batch, bool first);
  // The whole loss of some samples of a mini-batch, and the policy's part of it.
  runtime::Result<at::Tensor> loss(const Update& update, const MiniBatch& mini_batch,
                                   const Outputs& outputs, const MicroBatch& samples,
                                   const PackedBatch& packed, Metrics& metrics) const;
  runtime::Result<at::Tensor> policy_loss(const Update& update, const MiniBatch& mini_batch,
                                          const MicroBatch& samples, const TokenLogprobs& outputs,
                                          Metrics& metrics) const;
  Passes scoring() const { return {learner_.model(), {.bf16 = options_.bf16}}; }

  PolicyOptions options_;
  Learner learner_;
  double peak_flops_ = 0.0;
};

}  // namespace rl
