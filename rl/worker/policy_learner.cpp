#include "rl/worker/policy_learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "rl/algo/masked.h"
#include "rl/algo/token_advantage.h"
#include "rl/model/head.h"
#include "rl/model/save.h"
#include "rl/plan/flops.h"
#include "rl/worker/response_scores.h"
#include "rl/worker/variance_proxy.h"

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

Result<Probabilities> probabilities(const Passes& passes, const RolloutBatch& batch,
                                    const PolicyOptions& options,
                                    std::span<const MicroBatch> micro_batches) {
  return response_probabilities(passes, batch, options.training.temperature,
                                {{0, batch.samples()}, micro_batches});
}

// How far the tokens' probabilities lie apart.
double mean_difference(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(std::exp(static_cast<double>(a[i])) - std::exp(static_cast<double>(b[i])));
  return a.empty() ? 0.0 : sum / static_cast<double>(a.size());
}

}  // namespace

Result<std::unique_ptr<Transformer>> load_policy(const PolicyOptions& options,
                                                 const TrainingRanks& ranks) {
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
      {.threads = options.threads,
       .device = options.device,
       .part = weights_needed(options.learner, ranks)});
  if (!model.ok() || !options.adapter) return model;
  const Status used = use_adapter(**model, *options.adapter);
  if (!used.ok()) return used;
  return model;
}

PolicyLearner::PolicyLearner(const PolicyOptions& options, std::unique_ptr<Transformer> model,
                             TrainingRanks ranks)
    : options_(options), learner_(std::move(model), std::move(ranks), options.learner) {}

void PolicyLearner::measure_peak_flops() {
  peak_flops_ = measured_peak_flops(learner_.model().parameters().arena().device(), options_.bf16);
}

Result<TokenEstimates> PolicyLearner::estimate(const RolloutBatch& batch,
                                               std::span<const float> reference_logprobs,
                                               const EstimateTask& task) {
  if (const Status valid = batch.validate(); !valid.ok()) return valid;
  if (options_.estimates.estimator->traits().needs_probabilities) {
    const Offload::Stay here = learner_.stay();
    const Result<Probabilities> of_tokens =
        probabilities(scoring(), batch, options_, task.micro_batches);
    if (!of_tokens.ok()) return of_tokens.status();
    return estimate_tokens(batch, {}, reference_logprobs, task, options_.estimates, *of_tokens);
  }
  if (!options_.estimates.estimator->traits().needs_critic)
    return estimate_tokens(batch, {}, reference_logprobs, task, options_.estimates);
  if (!options_.critic)
    return runtime::invalid_argument("estimate: this policy has no critic on its backbone");
  const Offload::Stay here = learner_.stay();
  Result<std::vector<float>> values = response_values(scoring(), value_head().name, batch,
                                                      {{0, batch.samples()}, task.micro_batches});
  if (!values.ok()) return values.status();
  return estimate_tokens(batch, std::move(*values), reference_logprobs, task, options_.estimates);
}

struct PolicyLearner::Update {
  const RolloutBatch& batch;
  std::span<const float> reference_logprobs;
  std::span<const float> teacher_logprobs;
  const UpdatePlan& plan;
  const TokenEstimates& estimates;
  std::vector<float> own_logprobs;  // of the responses, where they are computed in another
                                    // precision than in generation; else empty
  DiscoWeights disco;               // of the present mini-batch
  std::vector<float> chosen;  // per response token: 1 where covariant_tokens() chose; else empty
};

Result<Metrics> PolicyLearner::update(const RolloutBatch& batch,
                                      std::span<const float> reference_logprobs,
                                      const UpdatePlan& plan, const TokenEstimates& estimates,
                                      std::span<const float> teacher_logprobs) {
  const Status valid =
      check_update(batch, reference_logprobs, teacher_logprobs, plan, estimates, options_);
  if (!valid.ok()) return valid;
  const Offload::Stay here = learner_.stay(/*with_gradients=*/true);
  Update update{batch, reference_logprobs, teacher_logprobs, plan, estimates, {}, {}, {}};
  if (options_.bf16) {
    Result<std::vector<float>> own = logprobs(batch, plan.scoring_batches);
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
    const Result<Probabilities> of_tokens =
        probabilities(scoring(), batch, options_, plan.scoring_batches);
    if (!of_tokens.ok()) return of_tokens.status();
    std::int64_t samples_total = 0;
    for (const MiniBatch& mini_batch : plan.mini_batches) samples_total += mini_batch.samples_total;
    variance = variance_parts(batch, *of_tokens, sample_advantages(batch, plan, estimates),
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
// are known: its samples were generated by these weights.
Status PolicyLearner::weigh(Update& update, const MiniBatch& mini_batch, bool first) {
  const std::span<const float> old =
      update.own_logprobs.empty() ? update.batch.logprobs : update.own_logprobs;
  std::vector<float> now(old.begin(), old.end());
  if (!first || options_.samples_are_older) {
    const Result<std::vector<float>> part = response_logprobs(
        scoring(), update.batch, options_.training.temperature,
        {{mini_batch.first_sample, mini_batch.last_sample}, mini_batch.scoring_batches});
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

Result<at::Tensor> PolicyLearner::loss(const Update& update, const MiniBatch& mini_batch,
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

Result<at::Tensor> PolicyLearner::policy_loss(const Update& update, const MiniBatch& mini_batch,
                                              const MicroBatch& samples,
                                              const TokenLogprobs& outputs,
                                              Metrics& metrics) const {
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

Result<Metrics> PolicyLearner::supervise(const DemonstrationBatch& batch,
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
  const Status learned =
      learn_in_rounds(learner_, *micro_batches, plan.rounds, input.wanted,
                      [&](std::span<const MicroBatch> of_round, int turn) {
                        return passes.learn(of_round, input, loss_of, metrics, turn);
                      });
  if (!learned.ok()) return learned;
  const Result<OptimizerReport> report = learner_.apply(plan.learning_rate);
  if (!report.ok()) return report.status();
  metrics["sft/grad_norm"] = report->grad_norm * learner_.ranks().share();
  return metrics;
}

Result<std::vector<std::filesystem::path>> PolicyLearner::save(
    const std::filesystem::path& folder) {
  return with_tokenizer(learner_.save(folder), options_.model, folder / learner_.weights_folder());
}

Result<std::vector<std::filesystem::path>> PolicyLearner::write(
    const LearnerSnapshot& snapshot, const std::filesystem::path& folder) const {
  return with_tokenizer(snapshot.write(folder), options_.model, folder / snapshot.weights_folder());
}

Result<std::vector<float>> PolicyLearner::logprobs(const RolloutBatch& batch,
                                                   std::span<const MicroBatch> micro_batches) {
  const Status valid = batch.validate();
  if (!valid.ok()) return valid;
  const Offload::Stay here = learner_.stay();
  return response_logprobs(scoring(), batch, options_.training.temperature,
                           {{0, batch.samples()}, micro_batches});
}

}  // namespace rl
