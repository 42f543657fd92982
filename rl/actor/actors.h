// The actors of a training run: thin shells that fetch objects, call a worker, and put what others
// need into the object store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rl/actor/actor_profile.h"
#include "rl/actor/actor_values.h"
#include "rl/actor/trained_actor.h"
#include "rl/actor/weight_channel.h"
#include "rl/batch/rollout_batch.h"
#include "rl/metrics/metrics.h"
#include "rl/worker/critic_worker.h"
#include "rl/worker/policy_worker.h"
#include "rl/worker/reference_worker.h"
#include "rl/worker/reward_worker.h"
#include "runtime/runtime.h"

namespace rl {

class RewardActor;

/// One rank of the policy; see PolicyWorker for what its methods do and their errors.
class PolicyActor : public TrainedActor<PolicyWorker> {
 public:
  static constexpr const char* kName = "Policy";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<PolicyActor>> create(runtime::Runtime& runtime,
                                                              const WorkerSpec& spec);

  PolicyActor(runtime::Runtime& runtime, std::unique_ptr<PolicyWorker> worker)
      : TrainedActor(std::move(worker)), runtime_(runtime) {}

  runtime::Result<Generated> generate(const PromptBatch& prompts, bool validation);
  /// The same, with a reward that hears of each response, and the task of its prompt, as soon as it
  /// is there; see RewardActor::prepare.
  runtime::Result<Generated> generate_for(const PromptBatch& prompts, bool validation,
                                          const std::vector<RewardTask>& tasks,
                                          const runtime::ActorHandle<RewardActor>& reward);
  runtime::Result<Generated> generate_greedy(const PromptBatch& prompts);
  /// See PolicyWorker; `partial` is what the call before left over.
  runtime::Result<PartlyGenerated> generate_partially(const std::vector<PartialPrompt>& partial,
                                                      const std::vector<PromptBatch>& fresh,
                                                      const PartialPlan& plan,
                                                      std::uint64_t version);
  /// Gives the cluster the weights of now under that name, see WeightPublisher; versions grow.
  runtime::Status publish_weights(const std::string& name, std::uint64_t version);
  /// As generate(), by published weights of at least that version, which it waits for. Names may
  /// alternate; versions grow over all of them.
  runtime::Result<Generated> generate_with(const PromptBatch& prompts, const std::string& name,
                                           std::uint64_t version);
  /// `kept` and the samples of `prompts` (rows of `fresh`) behind it, as one batch: how a step's
  /// samples are gathered from several rounds.
  runtime::Result<Generated> gather(const RolloutBatch& kept, const RolloutBatch& fresh,
                                    const std::vector<std::int64_t>& prompts);
  /// See collect_prompts(); `batches` are those of all workers.
  runtime::Result<Generated> collect(const std::vector<runtime::ObjectRef<RolloutBatch>>& batches,
                                     const std::vector<PromptPlace>& places);
  runtime::Result<Estimated> estimate(const RolloutBatch& batch,
                                      const std::vector<float>& reference_logprobs,
                                      const EstimateTask& task);
  runtime::Result<Metrics> update(const RolloutBatch& batch,
                                  const std::vector<float>& reference_logprobs,
                                  const UpdatePlan& plan, const TokenEstimates& estimates,
                                  const std::vector<float>& teacher_logprobs);
  runtime::Result<Metrics> supervise(const DemonstrationBatch& batch, const SupervisedPlan& plan);
  PassLimits pass_limits() { return worker().pass_limits(); }
  runtime::Status check_weights() { return worker().check_weights(); }
  std::uint64_t weights_checksum() { return worker().weights_checksum(); }
  void reset_optimizer() { worker().reset_optimizer(); }

 private:
  runtime::Result<Generated> publish(const runtime::Result<RolloutBatch>& batch, double seconds);

  runtime::Runtime& runtime_;
  std::map<std::string, WeightReceiver>
      receivers_;  // by name; of a worker that generates for another
};

/// One rank of a critic with its own model; see CriticWorker.
class CriticActor : public TrainedActor<CriticWorker> {
 public:
  static constexpr const char* kName = "Critic";

  /// Returns when all ranks of the group are there.
  static runtime::Result<std::unique_ptr<CriticActor>> create(runtime::Runtime& runtime,
                                                              const WorkerSpec& spec);

  CriticActor(runtime::Runtime& runtime, std::unique_ptr<CriticWorker> worker)
      : TrainedActor(std::move(worker)), runtime_(runtime) {}

  runtime::Result<Estimated> estimate(const RolloutBatch& batch,
                                      const std::vector<float>& reference_logprobs,
                                      const EstimateTask& task);
  runtime::Result<Metrics> update(const RolloutBatch& batch, const TokenEstimates& estimates,
                                  const UpdatePlan& plan);
  PassLimits pass_limits() { return worker().pass_limits(); }
  runtime::Status check_weights() { return worker().check_weights(); }

 private:
  runtime::Runtime& runtime_;
};

class ReferenceActor : public ProfiledActor {
 public:
  static constexpr const char* kName = "Reference";

  static runtime::Result<std::unique_ptr<ReferenceActor>> create(runtime::Runtime& runtime,
                                                                 const WorkerSpec& spec);

  ReferenceActor(runtime::Runtime& runtime, std::unique_ptr<ReferenceWorker> worker)
      : runtime_(runtime), worker_(std::move(worker)) {}

  /// `micro_batches`: its passes over the samples; none: one.
  runtime::Result<Referenced> score(const RolloutBatch& batch,
                                    const std::vector<MicroBatch>& micro_batches);
  /// score() of one of several teachers, for the samples with a 0 in `left_out` and their
  /// `micro_batches`. It is added to `so_far`, what the teachers before it said of all samples. An
  /// empty `so_far` means that this is the first teacher.
  runtime::Result<Referenced> score_some(const RolloutBatch& batch,
                                         const std::vector<std::uint8_t>& left_out,
                                         const std::vector<float>& so_far,
                                         const std::vector<double>& penalties_so_far,
                                         const std::vector<MicroBatch>& micro_batches);
  /// What score() said of `batch`, without the excluded samples.
  runtime::Result<Referenced> exclude_samples(const RolloutBatch& batch,
                                              const std::vector<float>& logprobs,
                                              const std::vector<double>& kl_penalties,
                                              const std::vector<std::uint8_t>& left_out);
  PassLimits pass_limits() { return worker_->pass_limits(); }

  /// See ReferenceWorker. Answered while the actor is in another call.
  Pulse pulse() const { return worker_->pulse(); }
  void give_up(const std::string& why) const { worker_->abort(runtime::deadline_exceeded(why)); }

 private:
  runtime::Runtime& runtime_;
  std::unique_ptr<ReferenceWorker> worker_;
};

/// One rank of the reward; see RewardWorker.
class RewardActor : public ProfiledActor {
 public:
  static constexpr const char* kName = "Reward";

  static runtime::Result<std::unique_ptr<RewardActor>> create(runtime::Runtime& runtime,
                                                              const WorkerSpec& spec);

  RewardActor(runtime::Runtime& runtime, RewardWorker worker)
      : runtime_(runtime), worker_(std::move(worker)) {}

  runtime::Result<RewardReport> score(const RolloutBatch& batch,
                                      const std::vector<RewardTask>& tasks);
  bool prepares() { return worker_.prepares(); }
  void prepare(const Ragged<std::int32_t>& responses, const std::vector<RewardTask>& tasks) {
    worker_.prepare(responses, tasks);
  }
  runtime::Result<std::vector<SampleText>> texts(const RolloutBatch& batch,
                                                 const std::vector<RewardTask>& tasks,
                                                 const std::vector<double>& scores,
                                                 std::int64_t count) {
    return worker_.texts(batch, tasks, scores, count);
  }
  /// The batch without the excluded samples, those with a 1 in `left_out`.
  runtime::Result<Generated> exclude_samples(const RolloutBatch& batch,
                                             const std::vector<std::uint8_t>& left_out);

  /// See RewardWorker. Answered while the actor is in another call.
  Pulse pulse() const { return worker_.pulse(); }
  void give_up(const std::string& why) const { worker_.abort(runtime::deadline_exceeded(why)); }

 private:
  runtime::Runtime& runtime_;
  RewardWorker worker_;
};

}  // namespace rl
