// The policy role: generates with its weights, learns from what it generated. Plain C++: the actor
// around it is in policy_actor.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rl/agent/turn_source.h"
#include "rl/rollout/engine.h"
#include "rl/rollout/partial_rollout.h"
#include "rl/train/batch_plan.h"
#include "rl/train/communicator.h"
#include "rl/train/learner.h"
#include "rl/train/rollout_batch.h"
#include "rl/watch/metrics.h"
#include "rl/worker/passes.h"
#include "rl/worker/policy_options.h"
#include "rl/worker/token_estimates.h"
#include "rl/worker/update_loop.h"
#include "runtime/core/result.h"

namespace rl {

/// Prompts for partial rollouts, oldest first: those that a draw before has begun, and new ones.
struct PartialPrompts {
  std::vector<BegunPrompt> begun;
  std::vector<PromptBatch> fresh;
};

/// What became of them.
struct PartialBatch {
  RolloutBatch batch;                  // of the prompts that are finished
  std::vector<std::int64_t> finished;  // which they are: indices into all prompts, ascending
  std::vector<std::int64_t>
      oldest;  // per sample: the first and the last version of the weights that drew it
  std::vector<std::int64_t> newest;
  std::vector<BegunPrompt> rest;
};

/// One data-parallel rank of the policy: a Transformer (or an adapter on one), its optimizer, and
/// an engine that reads the same weights in place. With options.critic the Transformer has a value
/// head, too, which learns in the same passes. Ranks call the same methods in the same order;
/// update(), supervise() and check_weights() are collective. A resource; one thread at a time.
class PolicyWorker {
 public:
  /// Loads the model. Errors: those of Transformer::load and Engine::create.
  static runtime::Result<std::unique_ptr<PolicyWorker>> create(
      const PolicyOptions& options, std::unique_ptr<Communicator> communicator);

  /// Samples for each prompt, by options.training or options.validation. Samples depend on weights,
  /// prompt and seed alone. kInvalidArgument: a prompt that leaves no room for a response, an id
  /// outside the vocabulary. `on_finished` hears of responses, each with the row of its prompt, as
  /// soon as they are there; not with several turns.
  using OnFinished = std::function<void(std::span<const std::int32_t> prompt_of,
                                        const Ragged<std::int32_t>& responses)>;
  runtime::Result<RolloutBatch> generate(const PromptBatch& prompts, bool validation,
                                         const OnFinished& on_finished = nullptr);

  /// One greedy response to each prompt: what ReMax compares the samples with. Errors: as
  /// generate().
  runtime::Result<RolloutBatch> generate_greedy(const PromptBatch& prompts);

  /// Of those prompts as many as the plan says, with the weights of now, which are that version;
  /// see draw_partially(). Errors: its.
  runtime::Result<PartialBatch> generate_partially(const PartialPrompts& prompts,
                                                   const PartialPlan& plan, std::uint64_t version);

  /// Of the samples drawn since this was asked last: what became of calls of tools. Empty without
  /// several turns.
  Metrics take_draw_metrics() { return agent_ ? agent_->take_metrics() : Metrics(); }

  /// Advantages of the samples' tokens: by the critic on this backbone, or from rewards alone where
  /// options.estimates names such an estimator. kInvalidArgument: GAE, and options.critic is
  /// nothing; those of estimate_tokens.
  runtime::Result<TokenEstimates> estimate(const RolloutBatch& batch,
                                           std::span<const float> reference_logprobs,
                                           const EstimateTask& task);

  /// PPO's policy update: options.epochs passes over the mini-batches, an optimizer step each.
  /// `reference_logprobs` and `teacher_logprobs` belong to the learned tokens, and are empty unless
  /// the objective has a KL loss or a teacher. Advantages are the plan's, per sample, or a
  /// critic's, per token; a critic on this backbone learns its returns in the same passes, so that
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

  /// What one of its passes may take: what plans of update() and supervise() are cut by.
  const MicroBatchLimits& micro_batch_limits() const { return options_.micro_batch; }

  /// Log-probabilities of the learned tokens under the present weights, at the training
  /// temperature.
  runtime::Result<std::vector<float>> logprobs(const RolloutBatch& batch);

  /// Collective; see Learner::check_equal_weights.
  runtime::Status check_weights() { return learner_.check_equal_weights(); }
  std::uint64_t weights_checksum() const { return learner_.weights_checksum(); }

  /// Writes what Learner::save does, and the tokenizer beside the model, so that the folder
  /// generates as it is.
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder);
  /// The same as a copy, and written: see Learner::snapshot(). Written on any thread, while the
  /// worker is at work.
  void snapshot(std::unique_ptr<LearnerSnapshot>& into) const { learner_.snapshot(into); }
  runtime::Result<std::vector<std::filesystem::path>> write(
      const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const;
  /// See Learner.
  runtime::Status load(const std::filesystem::path& folder) { return learner_.load(folder); }
  void reset_optimizer() { learner_.reset_optimizer(); }

  const Learner& learner() const { return learner_; }
  const Engine& engine() const { return *engine_; }

  /// While it lives model() may be used by others; see Learner::stay.
  [[nodiscard]] Offload::Stay stay() { return learner_.stay(); }
  runtime::Status await_weights() { return learner_.await_weights(); }

  /// Where its weights come from a policy elsewhere: what a WeightReceiver writes into, and what is
  /// told when it has; between two calls.
  Transformer& model() { return learner_.model(); }
  void weights_changed(std::uint64_t version) { engine_->weights_changed(version); }

 private:
  PolicyWorker(const PolicyOptions& options, std::unique_ptr<Transformer> model,
               std::unique_ptr<Communicator> communicator);

  static Request request_like(const SamplingOptions& how);
  runtime::Result<RolloutBatch> draw(const PromptBatch& prompts, const SamplingOptions& how,
                                     const OnFinished& on_finished = nullptr);
  runtime::Result<RolloutBatch> converse(const PromptBatch& prompts, const Request& like);

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
  std::unique_ptr<Conversations> agent_;  // null: each sample is one turn
  std::unique_ptr<Engine> engine_;
  double peak_flops_ = 0.0;  // measured at the beginning
};

}  // namespace rl
