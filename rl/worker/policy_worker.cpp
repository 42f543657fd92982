#include "rl/worker/policy_worker.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "rl/agent/agent_loop.h"
#include "rl/agent/custom_loops.h"
#include "rl/algo/masked.h"
#include "rl/algo/token_advantage.h"
#include "rl/model/device.h"
#include "rl/model/guarded.h"
#include "rl/model/head.h"
#include "rl/model/save.h"
#include "rl/train/flops.h"
#include "rl/train/memory_plan.h"
#include "rl/worker/response_scores.h"
#include "rl/worker/variance_proxy.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

at::Tensor copy_to_tensor(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()),
                       {static_cast<std::int64_t>(values.size())}, at::kFloat)
      .clone();
}

// Log-probs of another model: of each learned token where they are wanted, else none.
Status check_logprobs(const char* whose, std::span<const float> logprobs, bool wanted,
                      const RolloutBatch& batch) {
  if (logprobs.size() == (wanted ? batch.logprobs.size() : 0)) return {};
  return runtime::invalid_argument("update: " + std::to_string(logprobs.size()) + " " + whose +
                                   " log-probs for " + std::to_string(batch.logprobs.size()) +
                                   " tokens");
}

Status check_update(const RolloutBatch& batch, std::span<const float> reference_logprobs,
                    std::span<const float> teacher_logprobs, const UpdatePlan& plan,
                    const TokenEstimates& estimates, const PolicyOptions& options) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  if (estimates.empty() && options.critic && batch.samples() > 0)
    return runtime::invalid_argument("update: the critic's estimates are missing");
  if (!estimates.empty()) {
    if (const Status valid = check_estimates(batch, estimates, options.critic.has_value());
        !valid.ok())
      return valid;
  } else if (static_cast<std::int64_t>(plan.advantages.size()) != batch.samples()) {
    return runtime::invalid_argument("update: one advantage a sample is needed");
  }
  if (const Status valid =
          check_logprobs("reference", reference_logprobs, options.objective.use_kl_loss, batch);
      !valid.ok())
    return valid;
  if (const Status valid = check_logprobs("teacher", teacher_logprobs,
                                          options.objective.distillation.has_value(), batch);
      !valid.ok())
    return valid;
  return check_plan(batch, plan);
}

// One advantage a response token.
std::vector<float> sample_advantages(const RolloutBatch& batch, const UpdatePlan& plan,
                                     const TokenEstimates& estimates) {
  std::vector<float> advantages;
  for (const float advantage : estimates.advantages)
    advantages.push_back(static_cast<float>((advantage - plan.scaling.mean) * plan.scaling.scale));
  if (!estimates.empty()) return advantages;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    advantages.insert(advantages.end(), static_cast<std::size_t>(batch.learned_tokens(sample)),
                      plan.advantages[static_cast<std::size_t>(sample)]);
  }
  return advantages;
}

PackedBatch pack_demonstrations(const DemonstrationBatch& batch, const MicroBatch& rows) {
  PackedBatch packed;
  for (std::int64_t i = rows.first; i < rows.last; ++i) {
    std::vector<std::int32_t> sequence(batch.prompts.row(i).begin(), batch.prompts.row(i).end());
    sequence.insert(sequence.end(), batch.responses.row(i).begin(), batch.responses.row(i).end());
    packed.append(sequence, batch.prompts.row_size(i));
  }
  return packed;
}

// How far the tokens' probabilities lie apart.
double mean_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(std::exp(static_cast<double>(a[i])) - std::exp(static_cast<double>(b[i])));
  return a.empty() ? 0.0 : sum / static_cast<double>(a.size());
}

// On a device passes are as large as half of what is free allows, and the engine's cache is what
// they leave: all of its memory is taken at once. Gradients are not there yet.
Status fit_device(const Transformer& model, PolicyOptions& options, EngineOptions& engine) {
  const std::optional<DeviceRoom> room = device_room(model.parameters().arena().device());
  if (!room) return {};
  const ModelConfig& config = model.config();
  MicroBatchLimits& limits = options.micro_batch;
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t free =
      std::max<std::int64_t>(0, room->free - model.trained_parameters().arena_size() * kElement);
  MemoryOptions memory{.trained_elements = options.adapter ? model.trained_parameters().arena_size()
                                                           : std::int64_t{-1},
                       .positions = engine.context_max,
                       .recompute_layers = options.recompute_layers,
                       .bf16 = options.bf16,
                       .on_device = true};
  if (limits.tokens_max > 0) {
    const std::int64_t fitting = tokens_that_fit(config, memory, limits.tokens_max, free / 2);
    if (fitting < limits.tokens_max)
      LOG(info, "passes of {} tokens instead of {}: the device has {} free", fitting,
          limits.tokens_max, bytes_text(room->free));
    limits.tokens_max = fitting;
  }
  memory.forward_tokens = memory.output_tokens =
      limits.samples_max > 0 ? limits.samples_max * engine.context_max
                             : std::max(limits.tokens_max, engine.context_max);
  const Result<std::int64_t> bytes =
      plan_cache({.device_total = room->total,
                  .device_free = free,
                  .utilization = options.engine.utilization,
                  .weights = model.parameters().arena_size() * kElement,
                  .passes = pass_bytes(training_memory(config, memory)),
                  .token_bytes = cache_token_bytes(config),
                  .longest = engine.context_max,
                  .sequences = engine.sequences_max});
  if (!bytes.ok()) return bytes.status();
  engine.cache.bytes_max = *bytes;
  return {};
}

// The model with what training puts on it: a critic's head, an adapter.
Result<std::unique_ptr<Transformer>> load_policy(const PolicyOptions& options) {
  Result<ModelConfig> config = ModelConfig::load(options.model);
  if (!config.ok()) return config.status();
  const std::string head = value_head().name;
  const bool has_head = std::any_of(config->output_heads.begin(), config->output_heads.end(),
                                    [&](const HeadConfig& h) { return h.name == head; });
  if (options.critic && !has_head) {
    config = with_head(std::move(*config), value_head());
    if (!config.ok()) return config.status();
  }
  Result<std::unique_ptr<Transformer>> model = Transformer::load(
      std::move(*config), options.model, options.critic ? options.critic->seed : 0,
      {.threads = options.threads, .device = options.device});
  if (!model.ok() || !options.adapter) return model;
  const Status used = use_adapter(**model, *options.adapter);
  if (!used.ok()) return used;
  return model;
}

}  // namespace

PolicyWorker::PolicyWorker(const PolicyOptions& options, std::unique_ptr<Transformer> model,
                           std::unique_ptr<Communicator> communicator)
    : options_(options), learner_(std::move(model), std::move(communicator), options.learner) {}

Result<std::unique_ptr<PolicyWorker>> PolicyWorker::create(
    const PolicyOptions& wanted, std::unique_ptr<Communicator> communicator) {
  at::set_num_threads(wanted.threads);  // backward's matrix products
  Result<std::unique_ptr<Transformer>> model = load_policy(wanted);
  if (!model.ok()) return model.status();
  PolicyOptions options = wanted;
  EngineOptions engine_options;
  engine_options.deterministic = options.deterministic_rollouts;
  engine_options.sequences_max = options.engine.sequences_max;
  engine_options.step_tokens_max = options.engine.step_tokens_max;
  engine_options.context_max =
      std::min(options.positions_max, (*model)->config().max_position_embeddings);
  const Status fits = fit_device(**model, options, engine_options);
  if (!fits.ok()) return fits;
  auto made = guarded<std::unique_ptr<PolicyWorker>>("the policy's gradients and optimizer", [&] {
    return std::unique_ptr<PolicyWorker>(
        new PolicyWorker(options, std::move(*model), std::move(communicator)));
  });
  if (!made.ok()) return made.status();
  std::unique_ptr<PolicyWorker> worker = std::move(*made);
  const Transformer& transformer = worker->learner_.model();
  // Whoever begins a run has read the tokenizer: without one there is no text to end.
  Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (tokenizer.ok() && tokenizer->eos_id()) engine_options.end_ids = {*tokenizer->eos_id()};
  if (options.agent) {
    engine_options.prefix_caching =
        PrefixCaching::kKeep;  // while all wait for tools, too; draw() forgets it
    if (!tokenizer.ok()) return tokenizer.status();
    Result<TurnText> text =
        TurnText::create(std::move(*tokenizer), options.chat_template, options.template_variables);
    if (!text.ok()) return text.status();
    if (options.agent->custom()) {
      Result<std::unique_ptr<CustomLoops>> loops = CustomLoops::create(*options.agent, *text);
      if (!loops.ok()) return loops.status();
      worker->agent_ = std::move(*loops);
    } else {
      Result<std::unique_ptr<AgentLoop>> agent =
          AgentLoop::create(*options.agent, std::move(*text));
      if (!agent.ok()) return agent.status();
      worker->agent_ = std::move(*agent);
    }
  }
  Result<std::unique_ptr<Engine>> engine = Engine::create(transformer, engine_options);
  if (!engine.ok()) return engine.status();
  worker->engine_ = std::move(*engine);
  worker->peak_flops_ =
      measured_peak_flops(transformer.parameters().arena().device(), options.bf16);
  return worker;
}

Result<RolloutBatch> PolicyWorker::generate(const PromptBatch& prompts, bool validation,
                                            const OnFinished& on_finished) {
  return draw(prompts, validation ? options_.validation : options_.training, on_finished);
}

Result<RolloutBatch> PolicyWorker::generate_greedy(const PromptBatch& prompts) {
  SamplingOptions greedy = options_.training;
  greedy.samples = 1;
  greedy.temperature = 0.0F;
  greedy.top_p = 1.0F;
  greedy.top_k = -1;
  greedy.first_temperature = 0.0F;
  return draw(prompts, greedy);
}

// Without its prompt.
Request PolicyWorker::request_like(const SamplingOptions& how) {
  return {.prompt_ids = {},
          .n = how.samples,
          .sampling = {.temperature = how.temperature,
                       .top_p = how.top_p,
                       .top_k = how.top_k,
                       .first_temperature = how.first_temperature,
                       .first_top_k = how.first_top_k,
                       .repetition_penalty = how.repetition_penalty,
                       .max_new_tokens = how.response_tokens_max,
                       .min_new_tokens = how.response_tokens_min,
                       .ignore_eos = how.ignore_eos}};
}

// Samples of prompts that are in the batch already, in their order.
static Status append_samples(RolloutBatch& batch, std::int32_t prompt,
                             std::span<const Completion> completions) {
  for (const Completion& completion : completions) {
    if (completion.ids.empty()) return runtime::internal_error("the engine gave an empty response");
    batch.prompt_of.push_back(prompt);
    batch.responses.append(completion.ids);
    batch.logprobs.insert(batch.logprobs.end(), completion.logprobs.begin(),
                          completion.logprobs.end());
    batch.lengths_max.push_back(completion.length_max);
    batch.stopped.push_back(completion.finish_reason == FinishReason::kStop ? 1 : 0);
  }
  return {};
}

namespace {

// Gathers the tokens of a generate() as they come, and tells of responses that have come to their
// end.
class FinishedResponses {
 public:
  FinishedResponses(const Engine& engine, std::size_t prompts, std::size_t samples,
                    const PolicyWorker::OnFinished& tell)
      : engine_(engine), samples_(samples), tell_(tell), begun_(prompts * samples) {}

  void look(RequestId first) {
    std::vector<std::int32_t> prompt_of;
    Ragged<std::int32_t> responses;
    for (const NewToken& token : engine_.new_tokens()) {
      const std::size_t prompt = token.request - first;
      std::vector<std::int32_t>& ids =
          begun_.at(prompt * samples_ + static_cast<std::size_t>(token.sample));
      ids.push_back(token.id);
      if (!token.last) continue;
      prompt_of.push_back(static_cast<std::int32_t>(prompt));
      responses.append(ids);
    }
    if (!prompt_of.empty()) tell_(prompt_of, responses);
  }

 private:
  const Engine& engine_;
  std::size_t samples_;
  const PolicyWorker::OnFinished& tell_;
  std::vector<std::vector<std::int32_t>> begun_;
};

}  // namespace

Result<RolloutBatch> PolicyWorker::draw(const PromptBatch& prompts, const SamplingOptions& how,
                                        const OnFinished& on_finished) {
  if (!prompts.ids.consistent() ||
      static_cast<std::int64_t>(prompts.seeds.size()) != prompts.ids.rows()) {
    return runtime::invalid_argument("generate: a seed for each prompt is needed");
  }
  const Request like = request_like(how);
  if (agent_) return converse(prompts, like);
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < prompts.ids.rows(); ++i) {
    const auto ids = prompts.ids.row(i);
    Request& request = requests.emplace_back(like);
    request.prompt_ids.assign(ids.begin(), ids.end());
    request.sampling.seed = prompts.seeds[static_cast<std::size_t>(i)];
  }
  RolloutBatch batch;
  batch.prompts = prompts.ids;
  if (requests.empty()) return batch;
  const Offload::Stay here = learner_.stay();
  Engine::OnStep on_step;
  std::optional<FinishedResponses> finished;
  if (on_finished) {
    finished.emplace(*engine_, requests.size(), static_cast<std::size_t>(how.samples), on_finished);
    on_step = [&](const EngineProgress& progress) {
      finished->look(progress.first);
      return true;
    };
  }
  const Result<std::vector<Completion>> completions = engine_->generate(requests, on_step);
  if (!completions.ok()) return completions.status();
  for (const Completion& completion : *completions) {
    if (completion.finish_reason == FinishReason::kError)
      return completion.status.with_context("generating for prompt " +
                                            std::to_string(completion.request));
    const Status appended = append_samples(batch, static_cast<std::int32_t>(completion.request),
                                           std::span(&completion, 1));
    if (!appended.ok()) return appended;
  }
  return batch;
}

Result<PartialBatch> PolicyWorker::generate_partially(const PartialPrompts& prompts,
                                                      const PartialPlan& plan,
                                                      std::uint64_t version) {
  std::vector<BegunPrompt> all = prompts.begun;
  for (const PromptBatch& fresh : prompts.fresh) {
    if (!fresh.ids.consistent() ||
        static_cast<std::int64_t>(fresh.seeds.size()) != fresh.ids.rows())
      return runtime::invalid_argument("generate_partially: a seed for each prompt is needed");
    for (std::int64_t i = 0; i < fresh.ids.rows(); ++i) {
      const auto ids = fresh.ids.row(i);
      all.push_back(
          {.ids = {ids.begin(), ids.end()}, .seed = fresh.seeds[static_cast<std::size_t>(i)]});
    }
  }
  const Offload::Stay here = learner_.stay();
  engine_->weights_changed(version);
  Result<PartialDraw> draw = draw_partially(*engine_, request_like(options_.training), all, plan);
  if (!draw.ok()) return draw.status();
  PartialBatch partial{.batch = {},
                       .finished = std::move(draw->finished),
                       .oldest = {},
                       .newest = {},
                       .rest = std::move(draw->rest)};
  for (std::size_t i = 0; i < partial.finished.size(); ++i) {
    partial.batch.prompts.append(all[static_cast<std::size_t>(partial.finished[i])].ids);
    const Status appended =
        append_samples(partial.batch, static_cast<std::int32_t>(i), draw->completions[i]);
    if (!appended.ok()) return appended;
    for (const Completion& completion : draw->completions[i]) {
      partial.oldest.push_back(
          static_cast<std::int64_t>(completion.weight_versions.front().version));
      partial.newest.push_back(
          static_cast<std::int64_t>(completion.weight_versions.back().version));
    }
  }
  return partial;
}

// Between two calls the weights change, and with them what the engine's cache is worth.
Result<RolloutBatch> PolicyWorker::converse(const PromptBatch& prompts, const Request& like) {
  const Offload::Stay here = learner_.stay();
  engine_->weights_changed(engine_->weight_version() + 1);
  EngineTurns turns(*engine_);
  Result<RolloutBatch> batch = agent_->run(turns, prompts, like);
  engine_->weights_changed(engine_->weight_version());  // its memory is the update's now
  return batch;
}

Result<TokenEstimates> PolicyWorker::estimate(const RolloutBatch& batch,
                                              std::span<const float> reference_logprobs,
                                              const EstimateTask& task) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  if (needs_probabilities(options_.estimates.estimator)) {
    const Offload::Stay here = learner_.stay();
    const Result<Probabilities> probabilities =
        response_probabilities(scoring(), batch, options_.training.temperature,
                               scoring_passes(batch, options_.scoring_batch));
    if (!probabilities.ok()) return probabilities.status();
    return estimate_tokens(batch, {}, reference_logprobs, task, options_.estimates, *probabilities);
  }
  if (options_.estimates.estimator != AdvantageEstimator::kGae)
    return estimate_tokens(batch, {}, reference_logprobs, task, options_.estimates);
  if (!options_.critic)
    return runtime::invalid_argument("estimate: this policy has no critic on its backbone");
  const Offload::Stay here = learner_.stay();
  Result<std::vector<float>> values = response_values(
      scoring(), value_head().name, batch, scoring_passes(batch, options_.scoring_batch));
  if (!values.ok()) return values.status();
  return estimate_tokens(batch, std::move(*values), reference_logprobs, task, options_.estimates);
}

struct PolicyWorker::Update {
  const RolloutBatch& batch;
  std::span<const float> reference_logprobs;
  std::span<const float> teacher_logprobs;
  const UpdatePlan& plan;
  const TokenEstimates& estimates;
  std::vector<float> own_logprobs;  // of the responses, where they are computed in another
                                    // precision than they were drawn in; else empty
  DiscoWeights disco;               // of the present mini-batch
  std::vector<float> chosen;  // per response token: 1 where covariant_tokens() chose; else empty
};

Result<Metrics> PolicyWorker::update(const RolloutBatch& batch,
                                     std::span<const float> reference_logprobs,
                                     const UpdatePlan& plan, const TokenEstimates& estimates,
                                     std::span<const float> teacher_logprobs) {
  const Status valid =
      check_update(batch, reference_logprobs, teacher_logprobs, plan, estimates, options_);
  if (!valid.ok()) return valid;
  const Offload::Stay here = learner_.stay(/*with_gradients=*/true);
  Update update{batch, reference_logprobs, teacher_logprobs, plan, estimates, {}, {}, {}};
  if (options_.bf16) {
    Result<std::vector<float>> own = logprobs(batch);
    if (!own.ok()) return own.status();
    update.own_logprobs = std::move(*own);
  }
  if (options_.objective.chooses_tokens() && !plan.critic_only) {
    const auto choice = options_.objective.mode == PolicyLossMode::kClipCov
                            ? CovarianceChoice::kClip
                            : CovarianceChoice::kKl;
    Result<std::vector<float>> chosen =
        covariant_tokens(choice, batch, sample_advantages(batch, plan, estimates),
                         plan.mini_batches, options_.objective.covariance, learner_.ranks());
    if (!chosen.ok()) return chosen.status();
    update.chosen = std::move(*chosen);
  }
  Metrics variance;
  if (options_.probes_variance && !plan.critic_only) {
    const Result<Probabilities> probabilities =
        response_probabilities(scoring(), batch, options_.training.temperature,
                               scoring_passes(batch, options_.scoring_batch));
    if (!probabilities.ok()) return probabilities.status();
    std::int64_t samples_total = 0;
    for (const MiniBatch& mini_batch : plan.mini_batches) samples_total += mini_batch.samples_total;
    variance = variance_parts(batch, *probabilities, sample_advantages(batch, plan, estimates),
                              plan.use, samples_total);
  }
  const UpdateLoop loop{
      .epochs = options_.epochs,
      .passes = {.bf16 = options_.bf16, .recompute_layers = options_.recompute_layers},
      .learning_rate = plan.learning_rate,
      .role = "actor",
      .peak_flops = peak_flops_};
  MiniBatchLoss learn{
      .wanted = {},
      .loss = [&](const MiniBatch& mini_batch, const Outputs& outputs, const MicroBatch& samples,
                  const PackedBatch& packed, Metrics& part) {
        return loss(update, mini_batch, outputs, samples, packed, part);
      }};
  if (!plan.critic_only) {
    learn.wanted.logprobs =
        LogprobOptions{.temperature = options_.training.temperature, .with_entropy = true};
  }
  if (options_.critic) learn.wanted.heads = {value_head().name};
  if (options_.objective.mode == PolicyLossMode::kDisco && !plan.critic_only) {
    learn.begin = [&](const MiniBatch& mini_batch, bool first) {
      return weigh(update, mini_batch, first);
    };
  }
  Result<Metrics> metrics = run_updates(learner_, batch, plan.mini_batches, loop, learn);
  if (metrics.ok()) metrics->merge(variance);
  if (metrics.ok() && options_.bf16)
    (*metrics)["training/rollout_probs_diff_mean"] =
        mean_difference(batch.logprobs, update.own_logprobs) * learner_.ranks().share();
  return metrics;
}

// The samples' weights in DisCO's loss follow from what they all score now. The first mini-batch's
// are known: its samples were drawn by these weights.
Status PolicyWorker::weigh(Update& update, const MiniBatch& mini_batch, bool first) {
  const std::span<const float> old =
      update.own_logprobs.empty() ? update.batch.logprobs : update.own_logprobs;
  std::vector<float> now(old.begin(), old.end());
  if (!first || options_.samples_are_older) {
    const Result<std::vector<float>> part =
        response_logprobs(scoring(), update.batch, options_.training.temperature,
                          scoring_passes(update.batch, options_.scoring_batch,
                                         mini_batch.first_sample, mini_batch.last_sample));
    if (!part.ok()) return part.status();
    std::copy(part->begin(), part->end(),
              now.begin() + update.batch.learned_before(mini_batch.first_sample));
  }
  Result<DiscoWeights> weights =
      disco_weights(update.batch, update.plan.advantages, now, old, mini_batch,
                    options_.objective.disco, learner_.ranks());
  if (!weights.ok()) return weights.status();
  update.disco = std::move(*weights);
  return {};
}

Result<at::Tensor> PolicyWorker::loss(const Update& update, const MiniBatch& mini_batch,
                                      const Outputs& outputs, const MicroBatch& samples,
                                      const PackedBatch& packed, Metrics& metrics) const {
  at::Tensor loss;
  if (!update.plan.critic_only) {
    Result<at::Tensor> policy = policy_loss(update, mini_batch, samples, outputs.logprobs, metrics);
    if (!policy.ok()) return policy;
    loss = std::move(*policy);
  }
  if (options_.critic) {
    const at::Tensor value = value_loss(update.batch, samples, packed, outputs.heads.front(),
                                        update.estimates, repeats_of(update.plan.use, samples),
                                        mini_batch, options_.critic->objective, metrics) *
                             options_.critic->loss_coefficient;
    loss = loss.defined() ? loss + value : value;
  }
  return loss;
}

Result<at::Tensor> PolicyWorker::policy_loss(const Update& update, const MiniBatch& mini_batch,
                                             const MicroBatch& samples,
                                             const TokenLogprobs& outputs, Metrics& metrics) const {
  const RolloutBatch& batch = update.batch;
  const std::vector<std::int64_t> lengths = learned_lengths(batch, samples);
  ObjectiveInputs inputs{
      .logprobs_BT = pad_rows(outputs.logprobs_N, lengths),
      .entropy_BT = pad_rows(outputs.entropy_N, lengths),
      .old_logprobs_BT = padded_rows(
          update.own_logprobs.empty() ? batch.logprobs : update.own_logprobs, batch, samples),
      .reference_BT = {},
      .advantages_BT = {},
      .mask_BT = length_mask(lengths),
      .chosen_BT = {},
      .weights_B = {},
      .kl_weight = update.disco.kl,
      .repeats_B = repeats_of(update.plan.use, samples),
      .positive_B = positive_of(update.plan.use, samples)};
  const auto mine = [&](const std::vector<float>& of_samples) {
    return copy_to_tensor(std::span(of_samples)
                              .subspan(static_cast<std::size_t>(samples.first),
                                       static_cast<std::size_t>(samples.last - samples.first)));
  };
  if (!update.disco.of_samples.empty()) inputs.weights_B = mine(update.disco.of_samples);
  if (!update.chosen.empty()) inputs.chosen_BT = padded_rows(update.chosen, batch, samples);
  if (options_.objective.use_kl_loss)
    inputs.reference_BT = padded_rows(update.reference_logprobs, batch, samples);
  if (options_.objective.distillation)
    inputs.teacher_BT = padded_rows(update.teacher_logprobs, batch, samples);
  if (update.estimates.empty()) {
    inputs.advantages_BT = per_token(mine(update.plan.advantages), inputs.mask_BT);
  } else {
    const AdvantageScaling& scaling = update.plan.scaling;
    inputs.advantages_BT =
        (padded_rows(update.estimates.advantages, batch, samples) - scaling.mean) * scaling.scale *
        inputs.mask_BT;
  }
  return policy_objective(options_.objective, inputs, mini_batch, metrics);
}

Result<Metrics> PolicyWorker::supervise(const DemonstrationBatch& batch,
                                        const SupervisedPlan& plan) {
  const bool consistent = batch.prompts.consistent() && batch.responses.consistent() &&
                          batch.prompts.rows() == batch.responses.rows();
  if (!consistent || plan.tokens_total < 1)
    return runtime::invalid_argument("supervise: sizes differ");
  const auto micro_batches = passes_over({0, batch.prompts.rows()}, plan.micro_batches);
  if (!micro_batches.ok()) return micro_batches.status();
  const Offload::Stay here = learner_.stay(/*with_gradients=*/true);
  const PassInput input{
      .pack = [&](const MicroBatch& rows) { return pack_demonstrations(batch, rows); },
      .wanted = {.logprobs = LogprobOptions()}};
  const auto loss_of = [&](const Outputs& outputs, const MicroBatch&, const PackedBatch&,
                           Metrics& sums) -> Result<at::Tensor> {
    const at::Tensor loss =
        -outputs.logprobs.logprobs_N.sum() / static_cast<double>(plan.tokens_total);
    sums["sft/loss"] += loss.item<double>();
    return loss;
  };
  Metrics metrics{{"sft/loss", 0.0}};
  const Passes passes(learner_.model(), {.bf16 = options_.bf16});
  if (const Status learned = passes.learn(*micro_batches, input, loss_of, metrics); !learned.ok())
    return learned;
  const Result<OptimizerReport> report = learner_.apply(plan.learning_rate);
  if (!report.ok()) return report.status();
  metrics["sft/grad_norm"] = report->grad_norm * learner_.ranks().share();
  return metrics;
}

Result<std::vector<std::filesystem::path>> PolicyWorker::save(const std::filesystem::path& folder) {
  return with_tokenizer(learner_.save(folder), options_.model, folder / learner_.weights_folder());
}

Result<std::vector<std::filesystem::path>> PolicyWorker::write(
    const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
  return with_tokenizer(snapshot.write(folder), options_.model, folder / snapshot.weights_folder());
}

Result<std::vector<float>> PolicyWorker::logprobs(const RolloutBatch& batch) {
  const Status valid = batch.validate();
  if (!valid.ok()) return valid;
  const Offload::Stay here = learner_.stay();
  return response_logprobs(scoring(), batch, options_.training.temperature,
                           scoring_passes(batch, options_.scoring_batch));
}

}  // namespace rl
