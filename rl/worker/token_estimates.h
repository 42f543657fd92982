// A critic's estimates for a worker's samples: values, returns and advantages of every response
// token. Shared by a separate critic and one that shares the policy's backbone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "rl/algo/advantage_estimator.h"
#include "rl/algo/aggregate.h"
#include "rl/algo/kl.h"
#include "rl/algo/token_advantage.h"
#include "rl/batch/batch_plan.h"
#include "rl/batch/rollout_batch.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "rl/model/packed_batch.h"
#include "rl/worker/response_scores.h"
#include "runtime/core/result.h"

namespace rl {

/// Of each learned token of a RolloutBatch; or empty, where no critic is used. A value that travels
/// between actors.
struct TokenEstimates {
  std::vector<float> values;   // what the critic predicted before its update, in units of reward;
                               // empty without a critic
  std::vector<float> returns;  // what it should have
  std::vector<float> advantages;  // not whitened: that takes the samples of all workers

  bool empty() const { return advantages.empty(); }

  auto fields() { return std::tie(values, returns, advantages); }
};

/// Count, mean, variance and range of numbers that several workers have seen.
struct Moments {
  double count = 0;
  double sum = 0;
  double squares = 0;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();

  void add(double value);
  void add(const Moments& other);
  double mean() const { return count > 0 ? sum / count : 0.0; }
  double variance() const;  // unbiased; 0 of fewer than two
  /// The moments of (number - mean) * scale, with a scale above 0.
  Moments scaled(double mean, double scale) const;

  auto fields() { return std::tie(count, sum, squares, smallest, largest); }
};

/// What the controller learns about TokenEstimates.
struct EstimateSummary {
  Moments values, returns, advantages, errors;  // errors: returns - values
  std::vector<Moments> advantages_of_samples = {};

  /// Without what is of samples.
  void add(const EstimateSummary& other);

  /// critic/values/..., critic/returns/..., critic/advantages/..., critic/vf_explained_var, in
  /// verl's names.
  Metrics metrics() const;

  auto fields() { return std::tie(values, returns, advantages, errors, advantages_of_samples); }
};

/// How advantages are whitened over all workers' tokens: (advantage - mean) * scale.
struct AdvantageScaling {
  double mean = 0.0;
  double scale = 1.0;

  /// To mean 0 and variance 1, as masked_whiten() does within a batch.
  static AdvantageScaling whitening(const Moments& advantages);

  auto fields() { return std::tie(mean, scale); }
};

/// What the controller knows of a worker's samples when their tokens are to be credited.
struct EstimateTask {
  std::vector<double> scores;  // per sample
  std::vector<double> baselines =
      {};  // per sample: the score of the greedy response to its prompt; empty but for ReMax
  double kl_coefficient =
      0.0;  // each token's reward less this times its estimated KL to the reference
  std::vector<MicroBatch> micro_batches =
      {};  // a model's passes over the samples, as many on every worker; none: one

  auto fields() { return std::tie(scores, baselines, kl_coefficient, micro_batches); }
};

/// How rewards of tokens become advantages.
struct EstimateOptions {
  const AdvantageEstimator* estimator =
      &advantage_estimator("gae");  // a TokenEstimator; others' work is done by the controller
  GaeOptions gae = {};
  KlPenalty kl_penalty{.estimator = KlEstimator::kK1};

  /// From `algorithm.*`. kInvalidArgument: a value out of range, by key.
  static runtime::Result<EstimateOptions> from_config(const Config& config);
};

/// PPO's value objective.
struct ValueObjective {
  double clip =
      0.5;  // how far a prediction may leave the one before the update before it stops counting
  AggregationMode aggregation = AggregationMode::kTokenMean;
  double horizon = 512;  // tokens of the longest response: what seq-mean-token-sum-norm divides by

  /// From `critic.cliprange_value` and `critic.loss_agg_mode`. kInvalidArgument: a value out of
  /// range, by key.
  static runtime::Result<ValueObjective> from_config(const Config& config);
};

/// Advantages of tokens by options.estimator: the scores stand on the last tokens. `values` are a
/// critic's, and empty without one; `reference_logprobs` belong to the learned tokens, and are
/// empty unless a KL is taken off. kInvalidArgument: sizes that do not fit.
runtime::Result<TokenEstimates> estimate_tokens(const RolloutBatch& batch,
                                                std::vector<float> values,
                                                std::span<const float> reference_logprobs,
                                                const EstimateTask& task,
                                                const EstimateOptions& options,
                                                const Probabilities& probabilities = {});

EstimateSummary summarize(const TokenEstimates& estimates, const RolloutBatch& batch);

/// kInvalidArgument: not of as many tokens as the batch has. Without a critic only the advantages
/// matter.
runtime::Status check_estimates(const RolloutBatch& batch, const TokenEstimates& estimates,
                                bool with_critic = true);

/// Of samples of a mini-batch: the value loss as its part of the step's, with graph. `head_T` is
/// what the head gave for the tokens of `packed` = pack_samples(batch, samples); `repeats_B` as in
/// UpdatePlan. Adds critic/vf_loss, critic/vf_clipfrac and critic/vpred_mean to `metrics`.
at::Tensor value_loss(const RolloutBatch& batch, const MicroBatch& samples,
                      const PackedBatch& packed, const at::Tensor& head_T,
                      const TokenEstimates& estimates, const at::Tensor& repeats_B,
                      const MiniBatch& mini_batch, const ValueObjective& objective,
                      Metrics& metrics);

/// Those samples' part of numbers per learned token, as rows padded with zeros.
at::Tensor padded_rows(std::span<const float> per_token, const RolloutBatch& batch,
                       const MicroBatch& samples);

/// How many tokens of those responses are learned.
std::vector<std::int64_t> learned_lengths(const RolloutBatch& batch, const MicroBatch& samples);

}  // namespace rl
