// The calls of role_calls.h, to the actors of a run's roles.
#pragma once

#include <filesystem>
#include <utility>

#include "rl/run/rl/role_calls.h"
#include "rl/run/rl/roles.h"
#include "rl/run/rl/run_cluster.h"
#include "rl/run/rl/warm_start.h"
#include "runtime/runtime.h"

namespace rl {

class RemoteGenerate : public GenerateCalls {
 public:
  explicit RemoteGenerate(const Roles& roles) : roles_(roles) {}

  std::size_t workers() const override { return roles_.policy.size(); }
  void score_early() override { scores_early_ = true; }
  runtime::Result<std::vector<Generated>> generate(const StepPrompts& prompts,
                                                   bool validation) override;
  runtime::Result<std::vector<Generated>> generate_greedy(
      const std::vector<PromptBatch>& prompts) override;

 private:
  const Roles& roles_;
  bool scores_early_ = false;
};

class RemotePartial : public PartialCalls {
 public:
  RemotePartial(runtime::Runtime& runtime, const Roles& roles) : runtime_(runtime), roles_(roles) {}

  std::size_t workers() const override { return roles_.policy.size(); }
  runtime::Result<std::vector<PartlyGenerated>> generate_partially(
      const std::vector<PartialRef>& partial, const std::vector<std::vector<PromptBatch>>& fresh,
      const std::vector<PartialPlan>& plans, std::uint64_t version) override;
  runtime::Result<PartialRef> put(const std::vector<PartialPrompt>& partial) override;
  runtime::Result<std::vector<PartialPrompt>> get(const PartialRef& partial) const override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
};

class RemoteAhead : public AheadCalls {
 public:
  RemoteAhead(runtime::Runtime& runtime, const Roles& roles) : runtime_(runtime), roles_(roles) {}

  std::size_t workers() const override { return roles_.policy.size(); }
  runtime::Status publish(const std::string& name, std::uint64_t version) override;
  std::vector<runtime::ObjectRef<Generated>> begin(const std::vector<PromptBatch>& prompts,
                                                   const std::string& name,
                                                   std::uint64_t version) override;
  runtime::Result<std::vector<Generated>> finish(
      const std::vector<runtime::ObjectRef<Generated>>& started) const override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
};

class RemoteBatches : public BatchCalls {
 public:
  RemoteBatches(runtime::Runtime& runtime, const Roles& roles) : runtime_(runtime), roles_(roles) {}

  runtime::Result<std::vector<Generated>> gather(
      const BatchRefs& kept, const BatchRefs& fresh,
      const std::vector<std::vector<std::int64_t>>& rows) override;
  runtime::Result<std::vector<Generated>> collect(const BatchRefs& batches,
                                                  const PromptPlaces& places) override;
  runtime::Result<std::vector<Generated>> leave_out(const BatchRefs& batches,
                                                    const SampleMarks& marks) override;
  runtime::Result<runtime::ObjectRef<RolloutBatch>> put(const RolloutBatch& batch) override;
  runtime::Result<RolloutBatch> get(const runtime::ObjectRef<RolloutBatch>& batch) const override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
};

class RemoteScore : public ScoreCalls {
 public:
  RemoteScore(runtime::Runtime& runtime, const Roles& roles) : runtime_(runtime), roles_(roles) {}

  Reports score(const BatchRefs& batches,
                const std::vector<std::vector<RewardTask>>& tasks) override;
  std::function<Reports()> begin_score(const BatchRefs& batches,
                                       const std::vector<std::vector<RewardTask>>& tasks) override;
  runtime::Result<std::vector<std::vector<SampleText>>> texts(
      const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks,
      const std::vector<std::vector<double>>& scores, std::int64_t count) override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
};

/// `group` may be started later.
class RemoteReference : public ReferenceCalls {
 public:
  RemoteReference(const WorkerGroup<ReferenceActor>& group, const EmptyObjects& nothing)
      : group_(group), nothing_(nothing) {}

  std::vector<PassLimits> limits() const override { return group_.pass_limits(); }
  runtime::Result<std::vector<Referenced>> score(const BatchRefs& batches,
                                                 const ScoringPasses& passes) override;
  runtime::Result<std::vector<Referenced>> score_some(const BatchRefs& batches,
                                                      const SampleMarks& marks,
                                                      const std::vector<Referenced>& so_far,
                                                      const ScoringPasses& passes) override;
  runtime::Result<std::vector<Referenced>> leave_out(const BatchRefs& batches,
                                                     const std::vector<Referenced>& said,
                                                     const SampleMarks& marks) override;

 private:
  const WorkerGroup<ReferenceActor>& group_;
  const EmptyObjects& nothing_;
};

/// By the critic where it has its own model, else by the policy.
class RemoteEstimate : public EstimateCalls {
 public:
  RemoteEstimate(runtime::Runtime& runtime, const Roles& roles)
      : runtime_(runtime), roles_(roles) {}

  std::vector<PassLimits> limits() const override {
    return roles_.critic.empty() ? roles_.policy.pass_limits() : roles_.critic.pass_limits();
  }
  runtime::Result<std::vector<Estimated>> estimate(const BatchRefs& batches,
                                                   const LogprobRefs& reference_logprobs,
                                                   const std::vector<EstimateTask>& tasks) override;
  runtime::Result<std::vector<TokenEstimates>> get(const EstimateRefs& estimates) const override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
};

class RemoteUpdate : public UpdateCalls {
 public:
  explicit RemoteUpdate(const Roles& roles) : roles_(roles) {}

  std::size_t workers() const override { return roles_.policy.size(); }
  bool has_critic() const override { return !roles_.critic.empty(); }
  std::vector<PassLimits> policy_limits() const override { return roles_.policy.pass_limits(); }
  std::vector<PassLimits> critic_limits() const override { return roles_.critic.pass_limits(); }
  runtime::Result<Metrics> update_critic(const BatchRefs& batches, const EstimateRefs& estimates,
                                         const std::vector<UpdatePlan>& plans) override;
  runtime::Result<Metrics> update_policy(const BatchRefs& batches,
                                         const LogprobRefs& reference_logprobs,
                                         const std::vector<UpdatePlan>& plans,
                                         const EstimateRefs& estimates,
                                         const LogprobRefs& teacher_logprobs) override;

 private:
  const Roles& roles_;
};

class RemoteState : public StateCalls {
 public:
  explicit RemoteState(const Roles& roles) : roles_(roles) {}

  bool has_critic() const override { return !roles_.critic.empty(); }
  runtime::Result<Write> policy_state(bool async) const override;
  runtime::Result<Write> critic_state(bool async) const override;
  runtime::Status load_policy(const std::filesystem::path& folder) override;
  runtime::Status load_critic(const std::filesystem::path& folder) override;

 private:
  const Roles& roles_;
};

/// Saves what the warm start makes of the policy into `folder`.
class RemoteWarmStart : public WarmStartCalls {
 public:
  RemoteWarmStart(runtime::Runtime& runtime, const Roles& roles, std::filesystem::path folder)
      : runtime_(runtime), roles_(roles), folder_(std::move(folder)) {}

  std::vector<MicroBatchLimits> limits() const override;
  runtime::Result<Metrics> supervise(const std::vector<DemonstrationBatch>& batches,
                                     const std::vector<SupervisedPlan>& plans) override;
  runtime::Status reset_optimizer() override;
  runtime::Status save_reference() override;

 private:
  runtime::Runtime& runtime_;
  const Roles& roles_;
  std::filesystem::path folder_;
};

/// The calls to all roles, which are started but for the reference. They borrow the runtime and
/// the roles.
RoleCalls remote_calls(runtime::Runtime& runtime, const Roles& roles,
                       const std::filesystem::path& warm_start_folder);

}  // namespace rl
