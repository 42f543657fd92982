#include "rl/actor/actors.h"

#include <chrono>
#include <utility>

#include "rl/actor/actor_setup.h"
#include "rl/actor/peak_memory.h"
#include "rl/actor/training_actors.h"
#include "rl/algo/kl.h"
#include "rl/config/config.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

constexpr std::chrono::seconds kTelling{
    10};  // a reward that does not hear of a response is gone, or stuck

Result<Estimated> put_estimates(runtime::Runtime& runtime, const Result<TokenEstimates>& estimates,
                                const RolloutBatch& batch) {
  if (!estimates.ok()) return estimates.status();
  Result<runtime::ObjectRef<TokenEstimates>> ref = runtime.put(*estimates);
  if (!ref.ok()) return ref.status();
  return Estimated{.estimates = std::move(*ref), .summary = summarize(*estimates, batch)};
}

// A version is published before it is asked for: what takes longer has been lost.
constexpr std::chrono::minutes kArrival{5};

// Whether the reference computes in bf16: as the policy, unless its key says otherwise.
Result<bool> reference_in_bf16(const Config& config, const PolicyOptions& policy,
                               const std::string& device) {
  const std::string key = "actor_rollout_ref.ref.fsdp_config.dtype";
  if (!config.is_set(key)) return policy.bf16;
  return computes_in_bf16(config, key, device);
}

}  // namespace

Result<std::unique_ptr<PolicyActor>> PolicyActor::create(runtime::Runtime& runtime,
                                                         const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  Result<PolicyOptions> options = PolicyOptions::from_config(*config, spec.device);
  if (!options.ok()) return options.status();
  options->model = spec.model;
  options->threads = spec.threads;
  place_adapter(spec, options->adapter);
  if (spec.generates_only) {
    options->learner.optimizer = OptimizerKind::kSgd;
    options->learner.offload = {};  // weights that are received go where the model is
    options->learner.sharing = {};
  } else if (const Status team = check_team(*config, kActorRole, spec); !team.ok()) {
    return team;
  }
  Result<TrainingRanks> ranks =
      join_group(runtime, spec, options->learner.sharing, options->learner.zero);
  if (!ranks.ok()) return ranks.status();
  Result<std::unique_ptr<PolicyWorker>> worker = PolicyWorker::create(*options, std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<PolicyActor>(runtime, std::move(*worker));
}

Result<Generated> PolicyActor::publish(const Result<RolloutBatch>& batch, double seconds) {
  if (!batch.ok()) return batch.status();
  Generated generated{.batch = {}, .summary = summarize(*batch)};
  generated.summary.seconds = seconds;
  generated.summary.metrics = worker().take_generation_metrics();
  Result<runtime::ObjectRef<RolloutBatch>> ref = runtime_.put(*batch);
  if (!ref.ok()) return ref.status();
  generated.batch = std::move(*ref);
  return generated;
}

Result<Generated> PolicyActor::generate(const PromptBatch& prompts, bool validation) {
  const CallSpan span("generate");
  const auto begin = std::chrono::steady_clock::now();
  const Result<RolloutBatch> batch = worker().generate(prompts, validation);
  return publish(batch,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

// Errors of the reward are reported when the batch is scored. The reward actor has all responses
// before another caller asks for their scores: else it would score them twice.
Result<Generated> PolicyActor::generate_for(const PromptBatch& prompts, bool validation,
                                            const std::vector<RewardTask>& tasks,
                                            const runtime::ActorHandle<RewardActor>& reward) {
  const CallSpan span("generate");
  if (static_cast<std::int64_t>(tasks.size()) != prompts.ids.rows())
    return runtime::invalid_argument("generate: a task for each prompt is needed");
  const auto begin = std::chrono::steady_clock::now();
  std::vector<runtime::ObjectRef<void>> told;
  const Result<RolloutBatch> batch = worker().generate(
      prompts, validation,
      [&](std::span<const std::int32_t> prompt_of, const Ragged<std::int32_t>& responses) {
        std::vector<RewardTask> of_each;
        for (const std::int32_t prompt : prompt_of)
          of_each.push_back(tasks[static_cast<std::size_t>(prompt)]);
        told.push_back(reward.call(&RewardActor::prepare, responses, of_each));
      });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!told.empty()) (void)runtime_.wait(told, told.size(), kTelling);
  return publish(batch, seconds);
}

Result<Generated> PolicyActor::generate_greedy(const PromptBatch& prompts) {
  const CallSpan span("generate_greedy");
  return publish(worker().generate_greedy(prompts), 0.0);
}

Result<PartlyGenerated> PolicyActor::generate_partially(const std::vector<PartialPrompt>& partial,
                                                        const std::vector<PromptBatch>& fresh,
                                                        const PartialPlan& plan,
                                                        std::uint64_t version) {
  const CallSpan span("generate_partially");
  const auto begin = std::chrono::steady_clock::now();
  Result<PartialBatch> batch = worker().generate_partially({partial, fresh}, plan, version);
  if (!batch.ok()) return batch.status();
  Result<Generated> generated =
      publish(batch->batch,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (!generated.ok()) return generated.status();
  Result<runtime::ObjectRef<std::vector<PartialPrompt>>> rest = runtime_.put(batch->rest);
  if (!rest.ok()) return rest.status();
  return PartlyGenerated{std::move(*generated), std::move(batch->finished),
                         std::move(batch->oldest), std::move(batch->newest), std::move(*rest)};
}

Status PolicyActor::publish_weights(const std::string& name, std::uint64_t version) {
  const Offload::Stay here = worker().stay();
  if (const Status there = worker().await_weights(); !there.ok()) return there;
  return WeightPublisher(runtime_, name).publish(worker().learner().model(), version);
}

Result<Generated> PolicyActor::generate_with(const PromptBatch& prompts, const std::string& name,
                                             std::uint64_t version) {
  WeightReceiver& receiver =
      receivers_.try_emplace(name, runtime_, name, worker().model()).first->second;
  const std::uint64_t before = receiver.version();
  const Status arrived = receiver.wait(version, kArrival);
  if (!arrived.ok()) return arrived;
  if (receiver.version() != before) worker().weights_changed(receiver.version());
  return generate(prompts, /*validation=*/false);
}

Result<Generated> PolicyActor::gather(const RolloutBatch& kept, const RolloutBatch& fresh,
                                      const std::vector<std::int64_t>& prompts) {
  const CallSpan span("gather");
  return publish(append_prompts(kept, fresh, prompts), 0.0);
}

Result<Generated> PolicyActor::collect(const std::vector<runtime::ObjectRef<RolloutBatch>>& batches,
                                       const std::vector<PromptPlace>& places) {
  const CallSpan span("collect");
  const Result<std::vector<RolloutBatch>> all = runtime_.objects().gather(batches);
  if (!all.ok()) return all.status();
  return publish(collect_prompts(*all, places), 0.0);
}

Result<Estimated> PolicyActor::estimate(const RolloutBatch& batch,
                                        const std::vector<float>& reference_logprobs,
                                        const EstimateTask& task) {
  const CallSpan span("estimate");
  return put_estimates(runtime_, worker().estimate(batch, reference_logprobs, task), batch);
}

Result<Metrics> PolicyActor::update(const RolloutBatch& batch,
                                    const std::vector<float>& reference_logprobs,
                                    const UpdatePlan& plan, const TokenEstimates& estimates,
                                    const std::vector<float>& teacher_logprobs) {
  const CallSpan span("update");
  return with_peaks(worker().update(batch, reference_logprobs, plan, estimates, teacher_logprobs),
                    worker().learner().model());
}

Result<Metrics> PolicyActor::supervise(const DemonstrationBatch& batch,
                                       const SupervisedPlan& plan) {
  const CallSpan span("supervise");
  return worker().supervise(batch, plan);
}

Result<std::unique_ptr<CriticActor>> CriticActor::create(runtime::Runtime& runtime,
                                                         const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  Result<CriticOptions> options = CriticOptions::from_config(*config, spec.device);
  if (!options.ok()) return options.status();
  options->model = spec.model;
  options->threads = spec.threads;
  if (const Status team = check_team(*config, kCriticRole, spec); !team.ok()) return team;
  Result<TrainingRanks> ranks =
      join_group(runtime, spec, options->learner.sharing, options->learner.zero);
  if (!ranks.ok()) return ranks.status();
  Result<std::unique_ptr<CriticWorker>> worker = CriticWorker::create(*options, std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<CriticActor>(runtime, std::move(*worker));
}

Result<Estimated> CriticActor::estimate(const RolloutBatch& batch,
                                        const std::vector<float>& reference_logprobs,
                                        const EstimateTask& task) {
  const CallSpan span("estimate");
  return put_estimates(runtime_, worker().estimate(batch, reference_logprobs, task), batch);
}

Result<Metrics> CriticActor::update(const RolloutBatch& batch, const TokenEstimates& estimates,
                                    const UpdatePlan& plan) {
  const CallSpan span("update");
  return worker().update(batch, estimates, plan);
}

Result<std::unique_ptr<ReferenceActor>> ReferenceActor::create(runtime::Runtime& runtime,
                                                               const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  const Result<PolicyOptions> policy = PolicyOptions::from_config(*config, spec.device);
  if (!policy.ok()) return policy.status();
  const Result<std::string> name = config->get_string("algorithm.kl_penalty");
  if (!name.ok()) return name.status();
  const Result<bool> bf16 = reference_in_bf16(*config, *policy, spec.device);
  if (!bf16.ok()) return bf16.status();
  const Result<OffloadOptions> offload =
      offload_from_config(*config, "actor_rollout_ref.ref.fsdp_config");
  if (!offload.ok()) return offload.status();
  const Result<MicroBatchLimits> micro_batch =
      scoring_batch_from_config(*config, kReferenceRole, spec.device);
  if (!micro_batch.ok()) return micro_batch.status();
  const Result<KlPenalty> penalty = parse_kl_penalty(*name);
  if (!penalty.ok()) return penalty.status().with_context("algorithm.kl_penalty");
  const Result<FrozenSharding> sharding = frozen_sharding_from_config(*config, kReferenceRole);
  if (!sharding.ok()) return sharding.status();
  Result<std::unique_ptr<Communicator>> ranks = join_frozen(runtime, spec, *sharding);
  if (!ranks.ok()) return ranks.status();
  Result<std::unique_ptr<ReferenceWorker>> worker =
      ReferenceWorker::create({.model = spec.model,
                               .adapter = spec.adapter,
                               .threads = spec.threads,
                               .device = spec.device,
                               .temperature = policy->training.temperature,
                               .micro_batch = *micro_batch,
                               .penalty = *penalty,
                               .bf16 = *bf16,
                               .offload = offload->parameters,
                               .sharding = *sharding},
                              std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<ReferenceActor>(runtime, std::move(*worker));
}

Result<Referenced> ReferenceActor::score(const RolloutBatch& batch,
                                         const std::vector<MicroBatch>& micro_batches) {
  const CallSpan span("score");
  const Result<ReferenceScores> scores = worker_->score(batch, micro_batches);
  if (!scores.ok()) return scores.status();
  Result<runtime::ObjectRef<std::vector<float>>> ref = runtime_.put(scores->logprobs);
  if (!ref.ok()) return ref.status();
  return Referenced{.logprobs = std::move(*ref), .kl_penalties = scores->kl_penalties};
}

Result<Referenced> ReferenceActor::score_some(const RolloutBatch& batch,
                                              const std::vector<std::uint8_t>& left_out,
                                              const std::vector<float>& so_far,
                                              const std::vector<double>& penalties_so_far,
                                              const std::vector<MicroBatch>& micro_batches) {
  const CallSpan span("score_some");
  const Result<RolloutBatch> own = without_samples(batch, left_out);
  if (!own.ok()) return own.status();
  const auto samples = static_cast<std::size_t>(batch.samples());
  std::vector<float> logprobs =
      so_far.empty()
          ? std::vector<float>(static_cast<std::size_t>(batch.learned_before(batch.samples())))
          : so_far;
  Referenced referenced{
      .logprobs = {},
      .kl_penalties = penalties_so_far.empty() ? std::vector<double>(samples) : penalties_so_far};
  if (referenced.kl_penalties.size() != samples)
    return runtime::invalid_argument("teacher: " + std::to_string(referenced.kl_penalties.size()) +
                                     " KL penalties for " + std::to_string(samples) + " samples");
  const Result<ReferenceScores> scores = worker_->score(*own, micro_batches);
  if (!scores.ok()) return scores.status();
  if (const Status put = put_token_values(batch, scores->logprobs, left_out, logprobs); !put.ok())
    return put;
  for (std::size_t sample = 0, next = 0; sample < samples; ++sample) {
    if (left_out[sample] == 0) referenced.kl_penalties[sample] = scores->kl_penalties[next++];
  }
  Result<runtime::ObjectRef<std::vector<float>>> ref = runtime_.put(logprobs);
  if (!ref.ok()) return ref.status();
  referenced.logprobs = std::move(*ref);
  return referenced;
}

Result<Referenced> ReferenceActor::exclude_samples(const RolloutBatch& batch,
                                                   const std::vector<float>& logprobs,
                                                   const std::vector<double>& kl_penalties,
                                                   const std::vector<std::uint8_t>& left_out) {
  const CallSpan span("exclude_samples");
  const Result<std::vector<float>> kept = token_values_without(batch, logprobs, left_out);
  if (!kept.ok()) return kept.status();
  if (kl_penalties.size() != left_out.size())
    return runtime::invalid_argument("reference: " + std::to_string(kl_penalties.size()) +
                                     " KL penalties for " + std::to_string(left_out.size()) +
                                     " samples");
  Result<runtime::ObjectRef<std::vector<float>>> ref = runtime_.put(*kept);
  if (!ref.ok()) return ref.status();
  Referenced referenced{.logprobs = std::move(*ref), .kl_penalties = {}};
  for (std::size_t sample = 0; sample < left_out.size(); ++sample) {
    if (left_out[sample] == 0) referenced.kl_penalties.push_back(kl_penalties[sample]);
  }
  return referenced;
}

Result<std::unique_ptr<RewardActor>> RewardActor::create(runtime::Runtime& runtime,
                                                         const WorkerSpec& spec) {
  const Result<Config> config = parse_config(spec);
  if (!config.ok()) return config.status();
  const Result<FrozenSharding> sharding = frozen_sharding_from_config(*config, kRewardModelRole);
  if (!sharding.ok()) return sharding.status();
  Result<std::unique_ptr<Communicator>> ranks = join_frozen(runtime, spec, *sharding);
  if (!ranks.ok()) return ranks.status();
  Result<RewardWorker> worker =
      RewardWorker::create(*config, spec.model, spec.size,
                           {.threads = spec.threads, .device = spec.device}, std::move(*ranks));
  if (!worker.ok()) return worker.status();
  return std::make_unique<RewardActor>(runtime, std::move(*worker));
}

Result<RewardReport> RewardActor::score(const RolloutBatch& batch,
                                        const std::vector<RewardTask>& tasks) {
  const CallSpan span("score");
  return worker_.score(batch, tasks);
}

Result<Generated> RewardActor::exclude_samples(const RolloutBatch& batch,
                                               const std::vector<std::uint8_t>& left_out) {
  const CallSpan span("exclude_samples");
  const Result<RolloutBatch> kept = without_samples(batch, left_out);
  if (!kept.ok()) return kept.status();
  Result<runtime::ObjectRef<RolloutBatch>> ref = runtime_.put(*kept);
  if (!ref.ok()) return ref.status();
  return Generated{.batch = std::move(*ref), .summary = summarize(*kept)};
}

namespace {
runtime::Runtime* registered_runtime = nullptr;
}  // namespace

runtime::Runtime& training_runtime() {
  CHECK(registered_runtime != nullptr);  // register_training_actors() comes first, in main
  return *registered_runtime;
}

void register_training_actors(runtime::Runtime& runtime) {
  registered_runtime = &runtime;
  register_trained_actor<PolicyActor>(
      runtime, &PolicyActor::generate, &PolicyActor::generate_for, &PolicyActor::generate_greedy,
      &PolicyActor::generate_partially, &PolicyActor::publish_weights, &PolicyActor::generate_with,
      &PolicyActor::gather, &PolicyActor::collect, &PolicyActor::estimate, &PolicyActor::update,
      &PolicyActor::supervise, &PolicyActor::pass_limits, &PolicyActor::check_weights,
      &PolicyActor::weights_checksum, &PolicyActor::reset_optimizer);
  register_trained_actor<CriticActor>(runtime, &CriticActor::estimate, &CriticActor::update,
                                      &CriticActor::pass_limits, &CriticActor::check_weights);
  runtime.register_actor<ReferenceActor>(
      ReferenceActor::kName, &ReferenceActor::score, &ReferenceActor::score_some,
      &ReferenceActor::exclude_samples, &ReferenceActor::pass_limits,
      &ReferenceActor::begin_profile, &ReferenceActor::end_profile,
      runtime::method(&ReferenceActor::pulse, {.concurrency_group = kWatchCalls}),
      runtime::method(&ReferenceActor::give_up, {.concurrency_group = kWatchCalls}));
  runtime.register_actor<RewardActor>(
      RewardActor::kName, &RewardActor::score, &RewardActor::prepares, &RewardActor::prepare,
      &RewardActor::texts, &RewardActor::exclude_samples, &RewardActor::begin_profile,
      &RewardActor::end_profile,
      runtime::method(&RewardActor::pulse, {.concurrency_group = kWatchCalls}),
      runtime::method(&RewardActor::give_up, {.concurrency_group = kWatchCalls}));
}

}  // namespace rl
