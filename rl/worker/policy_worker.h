// The policy role: generates with its weights, learns from what it generated. Plain C++: the actor
// around it is in actors.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/worker/policy_generator.h"
#include "rl/worker/policy_learner.h"
#include "rl/worker/weight_mover.h"
#include "runtime/core/result.h"

namespace rl {

/// One data-parallel rank of the policy: a PolicyLearner, and a PolicyGenerator whose engine reads
/// the learner's weights in place. A resource; one thread at a time.
class PolicyWorker {
 public:
  using OnFinished = PolicyGenerator::OnFinished;

  /// Loads the model. Errors: those of load_policy, make_conversations and Engine::create.
  static runtime::Result<std::unique_ptr<PolicyWorker>> create(const PolicyOptions& options,
                                                               TrainingRanks ranks);

  // -- See PolicyGenerator
  runtime::Result<RolloutBatch> generate(const PromptBatch& prompts, bool validation,
                                         const OnFinished& on_finished = nullptr) {
    return generator_->generate(prompts, validation, on_finished);
  }
  runtime::Result<RolloutBatch> generate_greedy(const PromptBatch& prompts) {
    return generator_->generate_greedy(prompts);
  }
  runtime::Result<PartialBatch> generate_partially(const PartialPrompts& prompts,
                                                   const PartialPlan& plan, std::uint64_t version) {
    return generator_->generate_partially(prompts, plan, version);
  }
  Metrics take_generation_metrics() { return generator_->take_generation_metrics(); }
  const Engine& engine() const { return generator_->engine(); }

  // -- See PolicyLearner
  runtime::Result<TokenEstimates> estimate(const RolloutBatch& batch,
                                           std::span<const float> reference_logprobs,
                                           const EstimateTask& task) {
    return learner_->estimate(batch, reference_logprobs, task);
  }
  runtime::Result<Metrics> update(const RolloutBatch& batch,
                                  std::span<const float> reference_logprobs, const UpdatePlan& plan,
                                  const TokenEstimates& estimates = {},
                                  std::span<const float> teacher_logprobs = {}) {
    return learner_->update(batch, reference_logprobs, plan, estimates, teacher_logprobs);
  }
  runtime::Result<Metrics> supervise(const DemonstrationBatch& batch, const SupervisedPlan& plan) {
    return learner_->supervise(batch, plan);
  }
  PassLimits pass_limits() const { return learner_->pass_limits(); }
  runtime::Result<std::vector<float>> logprobs(const RolloutBatch& batch,
                                               std::span<const MicroBatch> micro_batches = {}) {
    return learner_->logprobs(batch, micro_batches);
  }
  runtime::Status check_weights() { return learner_->check_weights(); }
  std::uint64_t weights_checksum() const { return learner_->weights_checksum(); }
  runtime::Result<std::vector<std::filesystem::path>> save(const std::filesystem::path& folder) {
    return learner_->save(folder);
  }
  runtime::Result<bool> agree_on_parts(const std::filesystem::path& root) {
    return learner_->agree_on_parts(root);
  }
  runtime::Status collect_state() { return learner_->collect_state(); }
  void snapshot(std::unique_ptr<LearnerSnapshot>& into) { learner_->snapshot(into); }
  runtime::Result<std::vector<std::filesystem::path>> write(
      const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
    return learner_->write(snapshot, folder);
  }
  runtime::Status load(const std::filesystem::path& folder) { return learner_->load(folder); }
  void reset_optimizer() { learner_->reset_optimizer(); }
  const Learner& learner() const { return std::as_const(*learner_).learner(); }

  // -- Weights that go elsewhere or come from there
  /// While it lives model() may be used by others; see Learner::stay.
  [[nodiscard]] Offload::Stay stay() { return learner().stay(); }
  runtime::Status await_weights() { return learner().await_weights(); }

  /// Where its weights come from a policy elsewhere: what a WeightReceiver writes into, and what is
  /// told when it has; between two calls.
  Transformer& model() { return learner_->learner().model(); }
  void weights_changed(std::uint64_t version) { generator_->weights_changed(version); }

 private:
  PolicyWorker() = default;

  std::unique_ptr<PolicyLearner> learner_;
  std::unique_ptr<WeightMover> weights_;
  std::unique_ptr<PolicyGenerator> generator_;
};

}  // namespace rl
