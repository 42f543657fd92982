#include "rl/worker/token_estimates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rl/algo/masked.h"
#include "rl/algo/policy_loss.h"
#include "rl/algo/token_estimator.h"

namespace rl {
namespace {

using runtime::Result;
using runtime::Status;

at::Tensor borrowed(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()),
                       {static_cast<std::int64_t>(values.size())}, at::kFloat);
}

// Values of learned tokens at their places in the response, zeros where something else stands.
at::Tensor placed_rows(const at::Tensor& packed_N, const RolloutBatch& batch) {
  if (batch.response_mask.empty())
    return pad_rows(packed_N, learned_lengths(batch, {0, batch.samples()}));
  std::vector<float> values(batch.responses.values.size(), 0.0F);
  const float* next = packed_N.const_data_ptr<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (batch.response_mask[i] != 0) values[i] = *next++;
  }
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample)
    lengths.push_back(batch.responses.row_size(sample));
  return pad_rows(borrowed(values), lengths);
}

// The values that stand on learned tokens, end to end.
std::vector<float> unplaced(const at::Tensor& rows_BT, const at::Tensor& mask_BT) {
  const at::Tensor kept = rows_BT.masked_select(mask_BT.to(at::kBool)).contiguous();
  return {kept.const_data_ptr<float>(), kept.const_data_ptr<float>() + kept.numel()};
}

// What an estimator sees of the samples. Tensors copy what they are made of.
RewardedTokens rewarded_tokens(const RolloutBatch& batch, std::span<const float> rewards,
                               std::span<const float> values, const EstimateTask& task,
                               const Probabilities& probabilities, const EstimatorTraits& traits) {
  const std::vector<std::int64_t> lengths = learned_lengths(batch, {0, batch.samples()});
  const auto rows = [&](std::span<const float> of_tokens) {
    return traits.compares_places ? placed_rows(borrowed(of_tokens), batch)
                                  : pad_rows(borrowed(of_tokens), lengths);
  };
  RewardedTokens tokens{.rewards_BT = rows(rewards),
                        .mask_BT = rows(std::vector<float>(rewards.size(), 1.0F)),
                        .groups = {batch.prompt_of.begin(), batch.prompt_of.end()}};
  if (traits.needs_critic) tokens.values_BT = rows(values);
  if (traits.needs_greedy_response) {
    const std::vector<float> baselines(task.baselines.begin(), task.baselines.end());
    tokens.baselines_B = borrowed(baselines).clone();
  }
  if (traits.needs_probabilities) {
    tokens.logprobs_BT = rows(probabilities.logprobs);
    tokens.squares_BT = rows(probabilities.squares);
  }
  return tokens;
}

Moments moments_of(std::span<const float> values) {
  Moments moments;
  for (const float value : values) moments.add(double{value});
  return moments;
}

void add_range(Metrics& metrics, const std::string& name, const Moments& moments) {
  if (moments.count == 0) return;
  metrics[name + "/mean"] = moments.mean();
  metrics[name + "/max"] = moments.largest;
  metrics[name + "/min"] = moments.smallest;
}

}  // namespace

void Moments::add(double value) { add(Moments{1, value, value * value, value, value}); }

void Moments::add(const Moments& other) {
  count += other.count;
  sum += other.sum;
  squares += other.squares;
  smallest = std::min(smallest, other.smallest);
  largest = std::max(largest, other.largest);
}

double Moments::variance() const {
  return count < 2 ? 0.0 : std::max(0.0, (squares - sum * sum / count) / (count - 1));
}

Moments Moments::scaled(double mean, double scale) const {
  return {.count = count,
          .sum = (sum - count * mean) * scale,
          .squares = (squares - 2.0 * mean * sum + count * mean * mean) * scale * scale,
          .smallest = (smallest - mean) * scale,
          .largest = (largest - mean) * scale};
}

void EstimateSummary::add(const EstimateSummary& other) {
  values.add(other.values);
  returns.add(other.returns);
  advantages.add(other.advantages);
  errors.add(other.errors);
}

Metrics EstimateSummary::metrics() const {
  Metrics metrics;
  add_range(metrics, "critic/values", values);
  add_range(metrics, "critic/returns", returns);
  add_range(metrics, "critic/advantages", advantages);
  if (values.count > 0)
    metrics["critic/vf_explained_var"] = 1.0 - errors.variance() / (returns.variance() + 1e-5);
  return metrics;
}

AdvantageScaling AdvantageScaling::whitening(const Moments& advantages) {
  return {.mean = advantages.mean(),
          .scale = advantages.count < 2 ? 1.0 : 1.0 / std::sqrt(advantages.variance() + 1e-8)};
}

Result<EstimateOptions> EstimateOptions::from_config(const Config& config) {
  ConfigReader read(config);
  EstimateOptions options;
  options.gae = {.gamma = read.get_float("algorithm.gamma"),
                 .lambda = read.get_float("algorithm.lam"),
                 .whiten = false,
                 .critic_lambda = read.find_float("algorithm.critic_lam"),
                 .length_alpha = read.find_float("algorithm.adaptive_lam_alpha")};
  const std::string estimator = read.get_string("algorithm.adv_estimator");
  const std::string penalty = read.get_string("algorithm.kl_penalty");
  if (!read.status().ok()) return read.status();
  const Result<const AdvantageEstimator*> named = parse_advantage_estimator(estimator);
  if (!named.ok()) return named.status().with_context("algorithm.adv_estimator");
  options.estimator = *named;
  const Result<KlPenalty> parsed = parse_kl_penalty(penalty);
  if (!parsed.ok()) return parsed.status().with_context("algorithm.kl_penalty");
  options.kl_penalty = *parsed;
  return options;
}

Result<ValueObjective> ValueObjective::from_config(const Config& config) {
  ConfigReader read(config);
  ValueObjective objective{
      .clip = read.get_float("critic.cliprange_value"),
      .horizon = static_cast<double>(read.get_int("data.max_response_length"))};
  objective.horizon = read.find_float("critic.loss_scale_factor").value_or(objective.horizon);
  const std::string mode = read.get_string("critic.loss_agg_mode");
  if (!read.status().ok()) return read.status();
  const Result<AggregationMode> aggregation = parse_aggregation_mode(mode);
  if (!aggregation.ok()) return aggregation.status().with_context("critic.loss_agg_mode");
  objective.aggregation = *aggregation;
  return objective;
}

std::vector<std::int64_t> learned_lengths(const RolloutBatch& batch, const MicroBatch& samples) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t sample = samples.first; sample < samples.last; ++sample)
    lengths.push_back(batch.learned_tokens(sample));
  return lengths;
}

at::Tensor padded_rows(std::span<const float> per_token, const RolloutBatch& batch,
                       const MicroBatch& samples) {
  const auto begin = static_cast<std::size_t>(batch.learned_before(samples.first));
  const auto end = static_cast<std::size_t>(batch.learned_before(samples.last));
  return pad_rows(borrowed(per_token.subspan(begin, end - begin)), learned_lengths(batch, samples))
      .clone();
}

Result<TokenEstimates> estimate_tokens(const RolloutBatch& batch, std::vector<float> values,
                                       std::span<const float> reference_logprobs,
                                       const EstimateTask& task, const EstimateOptions& options,
                                       const Probabilities& probabilities) {
  const std::size_t tokens = batch.logprobs.size();
  const auto samples = static_cast<std::size_t>(batch.samples());
  const EstimatorTraits& traits = options.estimator->traits();
  const bool fits = values.size() == (traits.needs_critic ? tokens : 0) &&
                    task.scores.size() == samples &&
                    task.baselines.size() == (traits.needs_greedy_response ? samples : 0) &&
                    reference_logprobs.size() == (task.kl_coefficient != 0.0 ? tokens : 0) &&
                    probabilities.squares.size() == (traits.needs_probabilities ? tokens : 0) &&
                    probabilities.logprobs.size() == probabilities.squares.size();
  if (!fits)
    return runtime::invalid_argument(
        "advantages: values, reference log-probs or scores are not of this batch");
  TokenEstimates estimates{.values = std::move(values), .returns = {}, .advantages = {}};
  if (batch.samples() == 0) return estimates;
  std::vector<float> rewards(tokens, 0.0F);
  if (task.kl_coefficient != 0.0) {
    const at::Tensor penalty =
        kl_penalty(borrowed(batch.logprobs), borrowed(reference_logprobs), options.kl_penalty)
            .contiguous();
    for (std::size_t i = 0; i < tokens; ++i)
      rewards[i] -= static_cast<float>(task.kl_coefficient) * penalty.const_data_ptr<float>()[i];
  }
  const std::vector<std::int64_t> lengths = learned_lengths(batch, {0, batch.samples()});
  for (std::size_t sample = 0, end = 0; sample < samples; ++sample) {
    end += static_cast<std::size_t>(lengths[sample]);
    rewards[end - 1] += static_cast<float>(task.scores[sample]);
  }
  const TokenEstimator* estimator = options.estimator->of_tokens();
  if (estimator == nullptr)
    runtime::check_failed(__FILE__, __LINE__, "an estimator of whole responses has no token's");
  const RewardedTokens rewarded =
      rewarded_tokens(batch, rewards, estimates.values, task, probabilities, traits);
  const Advantages advantages = estimator->advantages(rewarded, options.gae);
  estimates.advantages = unplaced(advantages.advantages_BT, rewarded.mask_BT);
  estimates.returns = unplaced(advantages.returns_BT, rewarded.mask_BT);
  return estimates;
}

EstimateSummary summarize(const TokenEstimates& estimates, const RolloutBatch& batch) {
  EstimateSummary summary{.values = moments_of(estimates.values),
                          .returns = moments_of(estimates.returns),
                          .advantages = moments_of(estimates.advantages),
                          .errors = {}};
  for (std::size_t i = 0; i < estimates.values.size(); ++i)
    summary.errors.add(double{estimates.returns[i]} - double{estimates.values[i]});
  std::size_t token = 0;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    Moments& of_sample = summary.advantages_of_samples.emplace_back();
    const std::size_t end = token + static_cast<std::size_t>(batch.learned_tokens(sample));
    for (; token < std::min(end, estimates.advantages.size()); ++token)
      of_sample.add(double{estimates.advantages[token]});
  }
  return summary;
}

Status check_estimates(const RolloutBatch& batch, const TokenEstimates& estimates,
                       bool with_critic) {
  const std::size_t tokens = batch.logprobs.size();
  const bool learns =
      !with_critic || (estimates.values.size() == tokens && estimates.returns.size() == tokens);
  if (learns && estimates.advantages.size() == tokens) return {};
  return runtime::invalid_argument("update: " + std::to_string(estimates.advantages.size()) +
                                   " advantages for " + std::to_string(tokens) + " tokens");
}

at::Tensor value_loss(const RolloutBatch& batch, const MicroBatch& samples,
                      const PackedBatch& packed, const at::Tensor& head_T,
                      const TokenEstimates& estimates, const at::Tensor& repeats_B,
                      const MiniBatch& mini_batch, const ValueObjective& objective,
                      Metrics& metrics) {
  const std::vector<std::int64_t> lengths = learned_lengths(batch, samples);
  const at::Tensor mask_BT = length_mask(lengths);
  const at::Tensor values_BT = pad_rows(at_targets(head_T, packed), lengths);
  const ValueLoss loss =
      clipped_value_loss(values_BT, padded_rows(estimates.values, batch, samples),
                         padded_rows(estimates.returns, batch, samples), objective.clip);
  const at::Tensor total = aggregate(loss.loss_BT * repeats_B.unsqueeze(1), mask_BT,
                                     {.mode = objective.aggregation,
                                      .tokens = static_cast<double>(mini_batch.tokens_total),
                                      .sequences = static_cast<double>(mini_batch.samples_total),
                                      .horizon = objective.horizon});
  const double tokens = std::max(1.0, static_cast<double>(mini_batch.tokens_total));
  metrics["critic/vf_loss"] += total.item<double>();
  const at::Tensor weight_BT = mask_BT * repeats_B.unsqueeze(1);
  metrics["critic/vf_clipfrac"] += masked_sum(loss.clipped_BT, weight_BT).item<double>() / tokens;
  metrics["critic/vpred_mean"] += masked_sum(values_BT.detach(), weight_BT).item<double>() / tokens;
  return total;
}

}  // namespace rl
