// What turns a step's rewards into credit: how much each response, or each of its tokens, is to be
// made more or less likely, and how often it counts.
#include <algorithm>
#include <numeric>
#include <utility>

#include "rl/algo/group_advantage.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;

// Which prompt of the step each sample answers: responses to one prompt are a group.
std::vector<std::int64_t> sample_groups(const std::vector<PromptShard>& shards,
                                        const std::vector<std::vector<std::int64_t>>& samples_of) {
  std::vector<std::int64_t> groups;
  for (std::size_t worker = 0; worker < shards.size(); ++worker) {
    for (std::size_t i = 0; i < shards[worker].prompts.size(); ++i) {
      groups.insert(groups.end(), static_cast<std::size_t>(samples_of[worker][i]),
                    shards[worker].prompts[i]);
    }
  }
  return groups;
}

// The samples as they would stand on a single worker: what is drawn at random by a sample's place
// must not depend on who trains it.
std::vector<std::size_t> in_order_of_prompts(const std::vector<std::int64_t>& groups) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  return order;
}

}  // namespace

Result<Trainer::Credit> Trainer::assign_credit(const StepSamples& samples, StepTimer& timer) {
  Credit credit{.advantages = {},
                .estimates = no_estimates_,
                .scaling = {},
                .use = use_of(samples),
                .rewards = samples.scores,
                .metrics = {}};
  scale_rewards(credit);
  const std::vector<std::vector<double>> scores = credit.rewards;
  const double kl_coefficient = options_.kl_in_reward ? state_.kl_coefficient : 0.0;
  if (options_.kl_in_reward) {
    const runtime::Status penalized = penalize(samples, credit);
    if (!penalized.ok()) return penalized;
  }
  if (options_.estimator == AdvantageEstimator::kGdpo) {
    std::vector<std::vector<float>> components(options_.gdpo_keys.size());
    for (const std::vector<double>& of_sample : join<std::vector<double>>(samples.components)) {
      for (std::size_t k = 0; k < components.size(); ++k)
        components[k].push_back(static_cast<float>(of_sample[k]));
    }
    credit.advantages = gdpo_advantages(
        components, options_.gdpo_weights, sample_groups(samples.shards, samples.samples_of),
        join<std::int64_t>(select(samples.summaries, &RolloutSummary::learned_tokens)),
        options_.normalize_by_std);
    return credit;
  }
  if (options_.estimator == AdvantageEstimator::kDisco) {
    credit.advantages = disco_labels(join<float>(samples.scores));
    return credit;
  }
  if (options_.estimator == AdvantageEstimator::kCodapo) {
    credit.advantages =
        credit_by_value(samples, sample_groups(samples.shards, samples.samples_of), credit);
    return credit;
  }
  if (options_.estimator == AdvantageEstimator::kOwn) {
    Result<std::vector<float>> own = options_.own_advantages.of(
        join<float>(credit.rewards), sample_groups(samples.shards, samples.samples_of),
        join<std::int64_t>(select(samples.summaries, &RolloutSummary::learned_tokens)));
    if (!own.ok()) return own.status();
    credit.advantages = std::move(*own);
    return credit;
  }
  if (!is_per_token(options_.estimator)) {
    credit.advantages = response_advantages(
        options_.estimator, join<float>(credit.rewards),
        sample_groups(samples.shards, samples.samples_of),
        join<std::int64_t>(select(samples.summaries, &RolloutSummary::learned_tokens)),
        options_.normalize_by_std);
    return credit;
  }
  std::vector<EstimateTask> tasks;
  for (std::size_t worker = 0; worker < scores.size(); ++worker) {
    tasks.push_back(
        {.scores = scores[worker],
         .baselines = samples.baselines.empty() ? std::vector<double>() : samples.baselines[worker],
         .kl_coefficient = kl_coefficient});
  }
  const auto logprobs =
      kl_coefficient != 0.0 ? select(samples.references, &Referenced::logprobs) : no_logprobs_;
  const auto estimated = critic_.empty()
                             ? policy_.fetch(&PolicyActor::estimate, split(samples.batches),
                                             split(logprobs), split(tasks))
                             : critic_.fetch(&CriticActor::estimate, split(samples.batches),
                                             split(logprobs), split(tasks));
  if (!estimated.ok()) return estimated.status();
  if (options_.estimator == AdvantageEstimator::kGae) timer.lap("values");
  EstimateSummary all;
  for (const Estimated& part : *estimated) all.add(part.summary);
  credit.estimates = select(*estimated, &Estimated::estimates);
  if (is_whitened(options_.estimator)) {
    credit.scaling = AdvantageScaling::whitening(all.advantages);
    all.advantages = all.advantages.scaled(credit.scaling.mean,
                                           credit.scaling.scale);  // as they are learned from
  }
  credit.metrics.merge(all.metrics());
  return credit;
}

// To look at: one a sample, or one of each of its learned tokens, as the objective will see them.
Result<std::vector<std::vector<float>>> Trainer::advantages_of_samples(const StepSamples& samples,
                                                                       const Credit& credit) {
  std::vector<std::vector<float>> advantages;
  for (const float advantage : credit.advantages) advantages.push_back({advantage});
  if (!credit.advantages.empty()) return advantages;
  const Result<std::vector<TokenEstimates>> estimates = runtime_.objects().gather(credit.estimates);
  if (!estimates.ok()) return estimates.status();
  for (std::size_t worker = 0; worker < samples.summaries.size(); ++worker) {
    const std::vector<float>& of_tokens = (*estimates)[worker].advantages;
    std::size_t token = 0;
    for (const std::int64_t count : samples.summaries[worker].learned_tokens) {
      std::vector<float>& of_sample = advantages.emplace_back();
      for (std::int64_t i = 0; i < count && token < of_tokens.size(); ++i)
        of_sample.push_back(
            static_cast<float>((of_tokens[token++] - credit.scaling.mean) * credit.scaling.scale));
    }
  }
  return advantages;
}

// Moving-average baseline and normalisation. The statistics are those of the steps before, so that
// no response is measured against itself.
void Trainer::scale_rewards(Credit& credit) {
  if (!options_.reward_scaling.enabled()) return;
  const RewardStatistics now =
      observe(state_.rewards, join<double>(credit.rewards), options_.reward_scaling);
  const RewardStatistics& past = state_.rewards.steps == 0 ? now : state_.rewards;
  for (std::vector<double>& part : credit.rewards) {
    for (double& reward : part) reward = scaled_reward(reward, past, options_.reward_scaling);
  }
  credit.metrics["critic/reward_baseline"] = past.mean;
  state_.rewards = now;
}

// KL in the reward: each response's reward less the coefficient times its estimated KL to the
// reference; then the controller's move.
runtime::Status Trainer::penalize(const StepSamples& samples, Credit& credit) {
  double kl_sum = 0.0;  // of each response's mean over its tokens, as verl's controller takes it
  std::int64_t count = 0;
  for (std::size_t worker = 0; worker < credit.rewards.size(); ++worker) {
    const std::vector<double>& penalties = samples.references[worker].kl_penalties;
    if (penalties.size() != credit.rewards[worker].size())
      return runtime::internal_error("the reference scored another number of samples");
    for (std::size_t i = 0; i < penalties.size(); ++i) {
      credit.rewards[worker][i] -= state_.kl_coefficient * penalties[i];
      kl_sum += penalties[i] / static_cast<double>(samples.summaries[worker].learned_tokens[i]);
      ++count;
    }
  }
  const double kl = kl_sum / static_cast<double>(std::max<std::int64_t>(count, 1));
  credit.metrics["actor/reward_kl_penalty"] = kl;
  credit.metrics["actor/reward_kl_penalty_coeff"] = state_.kl_coefficient;
  state_.kl_coefficient =
      next_kl_coefficient(options_.kl_control, state_.kl_coefficient, kl, count);
  return {};
}

// How often each sample counts, and which responses were right.
std::vector<SampleUse> Trainer::use_of(const StepSamples& samples) const {
  std::vector<SampleUse> uses(samples.scores.size());
  if (options_.pf_ppo) {
    const std::vector<double> scores = join<double>(samples.scores);
    const std::uint64_t seed =
        options_.seed ^ (0xBF58476D1CE4E5B9ULL * static_cast<std::uint64_t>(steps_done_ + 1));
    const std::vector<std::size_t> order =
        in_order_of_prompts(sample_groups(samples.shards, samples.samples_of));
    std::vector<double> ordered;
    for (const std::size_t sample : order) ordered.push_back(scores[sample]);
    const std::vector<std::int32_t> drawn = resample(
        resampling_weights(ordered, options_.pf_ppo->method, options_.pf_ppo->weight_pow), seed);
    std::vector<std::int32_t> repeats(scores.size());
    for (std::size_t i = 0; i < order.size(); ++i) repeats[order[i]] = drawn[i];
    const auto parts = cut_like(repeats, samples.scores);
    for (std::size_t worker = 0; worker < uses.size(); ++worker)
      uses[worker].repeats = parts[worker];
  }
  for (std::size_t worker = 0; worker < uses.size(); ++worker) {
    SampleUse& use = uses[worker];
    const std::vector<std::uint8_t>& stopped = samples.summaries[worker].stopped;
    if (options_.mask_truncated) {
      if (use.repeats.empty()) use.repeats.assign(stopped.size(), 1);
      for (std::size_t i = 0; i < stopped.size(); ++i) use.repeats[i] *= stopped[i];
    }
    if (!options_.positive_score) continue;
    for (const double score : samples.scores[worker])
      use.positive.push_back(score >= *options_.positive_score ? 1 : 0);
  }
  return uses;
}

}  // namespace rl
