// Calls of a step's parts to the groups of workers: interfaces, so that each part is tested with
// fakes. See remote_calls.h for the actors' side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/batch/balance.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/feed/prompt_feed.h"
#include "rl/metrics/metrics.h"
#include "rl/reward/reward_function.h"
#include "runtime/call/object_ref.h"
#include "runtime/core/result.h"

namespace rl {

struct UpdatePlan;

// Lists by worker of objects; an object that is not there stands for an empty one.
using BatchRefs = std::vector<runtime::ObjectRef<RolloutBatch>>;
using LogprobRefs = std::vector<runtime::ObjectRef<std::vector<float>>>;
using EstimateRefs = std::vector<runtime::ObjectRef<TokenEstimates>>;
using SampleMarks = std::vector<std::vector<std::uint8_t>>;  // a 1 for each sample to leave out
using ScoringPasses = std::vector<std::vector<MicroBatch>>;  // as many on every worker

/// Samples by the weights of now.
class GenerateCalls {
 public:
  virtual ~GenerateCalls() = default;
  virtual std::size_t workers() const = 0;
  /// From now on the reward hears of each response as soon as it is there. A scorer that hangs then
  /// costs only the rest of its time limit.
  virtual void score_early() = 0;
  virtual runtime::Result<std::vector<Generated>> generate(const StepPrompts& prompts,
                                                           bool validation) = 0;
  virtual runtime::Result<std::vector<Generated>> generate_greedy(
      const std::vector<PromptBatch>& prompts) = 0;
};

/// Samples of prompts that go on from step to step.
class PartialCalls {
 public:
  using PartialRef = runtime::ObjectRef<std::vector<PartialPrompt>>;

  virtual ~PartialCalls() = default;
  virtual std::size_t workers() const = 0;
  virtual runtime::Result<std::vector<PartlyGenerated>> generate_partially(
      const std::vector<PartialRef>& partial, const std::vector<std::vector<PromptBatch>>& fresh,
      const std::vector<PartialPlan>& plans, std::uint64_t version) = 0;
  virtual runtime::Result<PartialRef> put(const std::vector<PartialPrompt>& partial) = 0;
  /// Any thread.
  virtual runtime::Result<std::vector<PartialPrompt>> get(const PartialRef& partial) const = 0;
};

/// Samples by published weights, from workers that only generate.
class AheadCalls {
 public:
  virtual ~AheadCalls() = default;
  /// The number of the policy's workers: the shares of a step's samples.
  virtual std::size_t workers() const = 0;
  virtual runtime::Status publish(const std::string& name, std::uint64_t version) = 0;
  /// Begins the samples of all shares by that version.
  virtual std::vector<runtime::ObjectRef<Generated>> begin(const std::vector<PromptBatch>& prompts,
                                                           const std::string& name,
                                                           std::uint64_t version) = 0;
  /// Any thread.
  virtual runtime::Result<std::vector<Generated>> finish(
      const std::vector<runtime::ObjectRef<Generated>>& started) const = 0;
};

/// Batches of samples, from worker to worker.
class BatchCalls {
 public:
  virtual ~BatchCalls() = default;
  /// Each worker's batch with the samples of `rows`, prompts of the fresh batch, behind its own.
  virtual runtime::Result<std::vector<Generated>> gather(
      const BatchRefs& kept, const BatchRefs& fresh,
      const std::vector<std::vector<std::int64_t>>& rows) = 0;
  /// Each worker's batch of prompts that are in the batches of any.
  virtual runtime::Result<std::vector<Generated>> collect(const BatchRefs& batches,
                                                          const PromptPlaces& places) = 0;
  virtual runtime::Result<std::vector<Generated>> leave_out(const BatchRefs& batches,
                                                            const SampleMarks& marks) = 0;
  virtual runtime::Result<runtime::ObjectRef<RolloutBatch>> put(const RolloutBatch& batch) = 0;
  /// Any thread.
  virtual runtime::Result<RolloutBatch> get(
      const runtime::ObjectRef<RolloutBatch>& batch) const = 0;
};

/// Scores of samples.
class ScoreCalls {
 public:
  using Reports = runtime::Result<std::vector<RewardReport>>;

  virtual ~ScoreCalls() = default;
  virtual Reports score(const BatchRefs& batches,
                        const std::vector<std::vector<RewardTask>>& tasks) = 0;
  /// Begins the same; the function waits for it.
  virtual std::function<Reports()> begin_score(
      const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks) = 0;
  /// At most `count` samples of each worker as text.
  virtual runtime::Result<std::vector<std::vector<SampleText>>> texts(
      const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks,
      const std::vector<std::vector<double>>& scores, std::int64_t count) = 0;
};

/// Log-probabilities by a model that is not trained: a reference, a teacher.
class ReferenceCalls {
 public:
  virtual ~ReferenceCalls() = default;
  /// By worker: what one pass may take.
  virtual std::vector<PassLimits> limits() const = 0;
  virtual runtime::Result<std::vector<Referenced>> score(const BatchRefs& batches,
                                                         const ScoringPasses& passes) = 0;
  /// Of the samples without a mark, which the passes are over, put into what was said so far of
  /// all.
  virtual runtime::Result<std::vector<Referenced>> score_some(const BatchRefs& batches,
                                                              const SampleMarks& marks,
                                                              const std::vector<Referenced>& so_far,
                                                              const ScoringPasses& passes) = 0;
  virtual runtime::Result<std::vector<Referenced>> leave_out(const BatchRefs& batches,
                                                             const std::vector<Referenced>& said,
                                                             const SampleMarks& marks) = 0;
};

/// Advantages of tokens, from the critic or the policy.
class EstimateCalls {
 public:
  virtual ~EstimateCalls() = default;
  /// By worker: what one pass may take.
  virtual std::vector<PassLimits> limits() const = 0;
  virtual runtime::Result<std::vector<Estimated>> estimate(
      const BatchRefs& batches, const LogprobRefs& reference_logprobs,
      const std::vector<EstimateTask>& tasks) = 0;
  /// Fetches the estimates, by worker.
  virtual runtime::Result<std::vector<TokenEstimates>> get(const EstimateRefs& estimates) const = 0;
};

/// Optimizer steps on a step's samples. Metrics are summed over workers.
class UpdateCalls {
 public:
  virtual ~UpdateCalls() = default;
  virtual std::size_t workers() const = 0;
  virtual bool has_critic() const = 0;
  /// By worker: what one pass may take.
  virtual std::vector<PassLimits> policy_limits() const = 0;
  virtual std::vector<PassLimits> critic_limits() const = 0;
  virtual runtime::Result<Metrics> update_critic(const BatchRefs& batches,
                                                 const EstimateRefs& estimates,
                                                 const std::vector<UpdatePlan>& plans) = 0;
  virtual runtime::Result<Metrics> update_policy(const BatchRefs& batches,
                                                 const LogprobRefs& reference_logprobs,
                                                 const std::vector<UpdatePlan>& plans,
                                                 const EstimateRefs& estimates,
                                                 const LogprobRefs& teacher_logprobs) = 0;
};

/// What a checkpoint has of the models that are trained, each in its own folder.
class StateCalls {
 public:
  /// Relative to the folder.
  using Files = runtime::Result<std::vector<std::string>>;
  /// Begins to write into a folder, once; the function that it returns waits for the files. Any
  /// thread.
  using Write = std::function<std::function<Files()>(const std::filesystem::path& folder)>;

  virtual ~StateCalls() = default;
  virtual bool has_critic() const = 0;
  /// What there is to save now; see WorkerGroup::state().
  virtual runtime::Result<Write> policy_state(bool async) const = 0;
  virtual runtime::Result<Write> critic_state(bool async) const = 0;
  virtual runtime::Status load_policy(const std::filesystem::path& folder) = 0;
  virtual runtime::Status load_critic(const std::filesystem::path& folder) = 0;
};

}  // namespace rl
