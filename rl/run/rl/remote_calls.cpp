#include "rl/run/rl/remote_calls.h"

#include <memory>
#include <utility>

#include "rl/batch/worker_lists.h"
#include "rl/metrics/step_metrics.h"
#include "rl/run/rl/ref_lists.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;

}  // namespace

// Each policy worker generates samples for its prompts; they stay there.
Result<std::vector<Generated>> RemoteGenerate::generate(const StepPrompts& prompts,
                                                        bool validation) {
  if (!scores_early_)
    return roles_.policy.fetch(&PolicyActor::generate, split(prompts.batches), validation);
  std::vector<runtime::ActorHandle<RewardActor>> rewards;
  for (std::size_t worker = 0; worker < workers(); ++worker)
    rewards.push_back(roles_.reward.member(worker));
  return roles_.policy.fetch(&PolicyActor::generate_for, split(prompts.batches), validation,
                             split(prompts.tasks), split(rewards));
}

Result<std::vector<Generated>> RemoteGenerate::generate_greedy(
    const std::vector<PromptBatch>& prompts) {
  return roles_.policy.fetch(&PolicyActor::generate_greedy, split(prompts));
}

Result<std::vector<PartlyGenerated>> RemotePartial::generate_partially(
    const std::vector<PartialRef>& partial, const std::vector<std::vector<PromptBatch>>& fresh,
    const std::vector<PartialPlan>& plans, std::uint64_t version) {
  return roles_.policy.fetch(&PolicyActor::generate_partially, split(partial), split(fresh),
                             split(plans), version);
}

Result<RemotePartial::PartialRef> RemotePartial::put(const std::vector<PartialPrompt>& partial) {
  return runtime_.put(partial);
}

Result<std::vector<PartialPrompt>> RemotePartial::get(const PartialRef& partial) const {
  return runtime_.get(partial);
}

runtime::Status RemoteAhead::publish(const std::string& name, std::uint64_t version) {
  return runtime_.get(roles_.policy.leader().call(&PolicyActor::publish_weights, name, version));
}

// Which worker generates what changes no sample.
std::vector<ObjectRef<Generated>> RemoteAhead::begin(const std::vector<PromptBatch>& prompts,
                                                     const std::string& name,
                                                     std::uint64_t version) {
  std::vector<ObjectRef<Generated>> started;
  for (std::size_t worker = 0; worker < workers(); ++worker) {
    const auto& rollout = roles_.rollouts.member(worker % roles_.rollouts.size());
    started.push_back(rollout.call(&PolicyActor::generate_with, prompts[worker], name, version));
  }
  return started;
}

Result<std::vector<Generated>> RemoteAhead::finish(
    const std::vector<ObjectRef<Generated>>& started) const {
  return runtime_.objects().gather(started);
}

Result<std::vector<Generated>> RemoteBatches::gather(
    const BatchRefs& kept, const BatchRefs& fresh,
    const std::vector<std::vector<std::int64_t>>& rows) {
  const std::size_t workers = roles_.policy.size();
  return roles_.policy.fetch(&PolicyActor::gather,
                             split(filled(kept, roles_.nothing.samples, workers)),
                             split(filled(fresh, roles_.nothing.samples, workers)), split(rows));
}

Result<std::vector<Generated>> RemoteBatches::collect(const BatchRefs& batches,
                                                      const PromptPlaces& places) {
  return roles_.policy.fetch(&PolicyActor::collect,
                             split(needed_batches(batches, places, roles_.nothing.samples)),
                             split(places));
}

Result<std::vector<Generated>> RemoteBatches::leave_out(const BatchRefs& batches,
                                                        const SampleMarks& marks) {
  return roles_.reward.fetch(&RewardActor::exclude_samples, split(batches), split(marks));
}

Result<ObjectRef<RolloutBatch>> RemoteBatches::put(const RolloutBatch& batch) {
  return runtime_.put(batch);
}

Result<RolloutBatch> RemoteBatches::get(const ObjectRef<RolloutBatch>& batch) const {
  return runtime_.get(batch);
}

ScoreCalls::Reports RemoteScore::score(const BatchRefs& batches,
                                       const std::vector<std::vector<RewardTask>>& tasks) {
  return roles_.reward.fetch(&RewardActor::score, split(batches), split(tasks));
}

std::function<ScoreCalls::Reports()> RemoteScore::begin_score(
    const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks) {
  return [reward = roles_.reward,
          scoring = roles_.reward.call(&RewardActor::score, split(batches), split(tasks))] {
    return reward.gather(scoring);
  };
}

Result<std::vector<std::vector<SampleText>>> RemoteScore::texts(
    const BatchRefs& batches, const std::vector<std::vector<RewardTask>>& tasks,
    const std::vector<std::vector<double>>& scores, std::int64_t count) {
  return roles_.reward.fetch(&RewardActor::texts, split(batches), split(tasks), split(scores),
                             count);
}

Result<std::vector<Referenced>> RemoteReference::score(const BatchRefs& batches,
                                                       const ScoringPasses& passes) {
  return group_.fetch(&ReferenceActor::score, split(batches), split(passes));
}

Result<std::vector<Referenced>> RemoteReference::score_some(const BatchRefs& batches,
                                                            const SampleMarks& marks,
                                                            const std::vector<Referenced>& so_far,
                                                            const ScoringPasses& passes) {
  return group_.fetch(
      &ReferenceActor::score_some, split(batches), split(marks),
      split(filled(select(so_far, &Referenced::logprobs), nothing_.logprobs, batches.size())),
      split(select(so_far, &Referenced::kl_penalties)), split(passes));
}

Result<std::vector<Referenced>> RemoteReference::leave_out(const BatchRefs& batches,
                                                           const std::vector<Referenced>& said,
                                                           const SampleMarks& marks) {
  return group_.fetch(&ReferenceActor::exclude_samples, split(batches),
                      split(select(said, &Referenced::logprobs)),
                      split(select(said, &Referenced::kl_penalties)), split(marks));
}

Result<std::vector<Estimated>> RemoteEstimate::estimate(const BatchRefs& batches,
                                                        const LogprobRefs& reference_logprobs,
                                                        const std::vector<EstimateTask>& tasks) {
  const auto logprobs = filled(reference_logprobs, roles_.nothing.logprobs, batches.size());
  return roles_.critic.empty() ? roles_.policy.fetch(&PolicyActor::estimate, split(batches),
                                                     split(logprobs), split(tasks))
                               : roles_.critic.fetch(&CriticActor::estimate, split(batches),
                                                     split(logprobs), split(tasks));
}

Result<std::vector<TokenEstimates>> RemoteEstimate::get(const EstimateRefs& estimates) const {
  return runtime_.objects().gather(estimates);
}

Result<Metrics> RemoteUpdate::update_critic(const BatchRefs& batches, const EstimateRefs& estimates,
                                            const std::vector<UpdatePlan>& plans) {
  const auto updated = roles_.critic.fetch(
      &CriticActor::update, split(batches),
      split(filled(estimates, roles_.nothing.estimates, batches.size())), split(plans));
  if (!updated.ok()) return updated.status();
  return sum_metrics(*updated);
}

Result<Metrics> RemoteUpdate::update_policy(const BatchRefs& batches,
                                            const LogprobRefs& reference_logprobs,
                                            const std::vector<UpdatePlan>& plans,
                                            const EstimateRefs& estimates,
                                            const LogprobRefs& teacher_logprobs) {
  const std::size_t workers = batches.size();
  const auto updated =
      roles_.policy.fetch(&PolicyActor::update, split(batches),
                          split(filled(reference_logprobs, roles_.nothing.logprobs, workers)),
                          split(plans), split(filled(estimates, roles_.nothing.estimates, workers)),
                          split(filled(teacher_logprobs, roles_.nothing.logprobs, workers)));
  if (!updated.ok()) return updated.status();
  return sum_metrics(*updated);
}

Result<StateCalls::Write> RemoteState::policy_state(bool async) const {
  return roles_.policy.state(async);
}

Result<StateCalls::Write> RemoteState::critic_state(bool async) const {
  return roles_.critic.state(async);
}

runtime::Status RemoteState::load_policy(const std::filesystem::path& folder) {
  return roles_.policy.fetch(&PolicyActor::load, folder.string());
}

runtime::Status RemoteState::load_critic(const std::filesystem::path& folder) {
  return roles_.critic.fetch(&CriticActor::load, folder.string());
}

std::vector<MicroBatchLimits> RemoteWarmStart::limits() const {
  return select(roles_.policy.pass_limits(), &PassLimits::learning);
}

Result<Metrics> RemoteWarmStart::supervise(const std::vector<DemonstrationBatch>& batches,
                                           const std::vector<SupervisedPlan>& plans) {
  const auto reports = roles_.policy.fetch(&PolicyActor::supervise, split(batches), split(plans));
  if (!reports.ok()) return reports.status();
  return sum_metrics(*reports);
}

runtime::Status RemoteWarmStart::reset_optimizer() {
  return roles_.policy.fetch(&PolicyActor::reset_optimizer);
}

runtime::Status RemoteWarmStart::save_reference() {
  const runtime::Result<WriteState> write = roles_.policy.leaders_state();
  return write.ok() ? (*write)(folder_)().status() : write.status();
}

RoleCalls remote_calls(runtime::Runtime& runtime, const Roles& roles,
                       const std::filesystem::path& warm_start_folder) {
  RoleCalls calls{
      .generate = std::make_unique<RemoteGenerate>(roles),
      .partial = std::make_unique<RemotePartial>(runtime, roles),
      .ahead = std::make_unique<RemoteAhead>(runtime, roles),
      .batches = std::make_unique<RemoteBatches>(runtime, roles),
      .score = std::make_unique<RemoteScore>(runtime, roles),
      .reference = std::make_unique<RemoteReference>(roles.reference, roles.nothing),
      .teachers = {},
      .estimate = std::make_unique<RemoteEstimate>(runtime, roles),
      .update = std::make_unique<RemoteUpdate>(roles),
      .state = std::make_unique<RemoteState>(roles),
      .warm_start = std::make_unique<RemoteWarmStart>(runtime, roles, warm_start_folder)};
  for (const Teacher& teacher : roles.teachers)
    calls.teachers.push_back(std::make_unique<RemoteReference>(teacher.group, roles.nothing));
  return calls;
}

}  // namespace rl
