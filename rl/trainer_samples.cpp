// How a step comes by its samples: generation, scores, and what ReMax compares them with; with dynamic sampling in as many rounds as it takes.
#include <algorithm>
#include <string>
#include <utility>

#include "rl/train/group_filter.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Result;
using runtime::split;

Result<Trainer::StepSamples> Trainer::draw_samples(StepTimer& timer) {
  if (!options_.filter_groups.enabled) return draw_round(0, timer);
  StepSamples kept;
  for (std::int64_t round = 0;; ++round) {
    const std::int64_t missing = options_.batch_prompts - count_prompts(kept.shards);
    if (missing == 0) break;
    if (options_.filter_groups.rounds_max > 0 && round == options_.filter_groups.rounds_max) {
      return runtime::resource_exhausted("after " + std::to_string(round) + " rounds of generation " + std::to_string(missing) + " of " + std::to_string(options_.batch_prompts) +
                                         " prompts with responses of different scores are missing: the task may be too easy or too hard; raise "
                                         "algorithm.filter_groups.max_num_gen_batches, data.gen_batch_size or actor_rollout_ref.rollout.n");
    }
    const Result<StepSamples> fresh = draw_round(round, timer);
    if (!fresh.ok()) return fresh.status();
    const auto rows = informative_prompts(fresh->shards, fresh->scores, options_.samples_per_prompt, missing);
    if (kept.batches.empty()) kept.batches.assign(policy_.size(), no_samples_);
    const auto gathered = policy_.fetch(&PolicyActor::gather, split(kept.batches), split(fresh->batches), split(rows));
    if (!gathered.ok()) return gathered.status();
    kept.batches = select(*gathered, &Generated::batch);
    kept.summaries = select(*gathered, &Generated::summary);
    append_prompts(kept.shards, fresh->shards, rows);
    kept.scores.resize(policy_.size());
    kept.baselines.resize(fresh->baselines.size());
    const auto n = static_cast<std::ptrdiff_t>(options_.samples_per_prompt);
    for (std::size_t worker = 0; worker < rows.size(); ++worker) {
      for (const std::int64_t row : rows[worker]) {
        const auto copy = [&](std::vector<double>& to, const std::vector<double>& from) { to.insert(to.end(), from.begin() + row * n, from.begin() + (row + 1) * n); };
        copy(kept.scores[worker], fresh->scores[worker]);
        if (!fresh->baselines.empty()) copy(kept.baselines[worker], fresh->baselines[worker]);
      }
    }
    kept.prompts_drawn += fresh->prompts_drawn;
    kept.rounds = round + 1;
    kept.epoch = fresh->epoch;
    timer.lap("gen");
  }
  cut_mini_batches(kept.shards, options_.mini_batch_prompts);
  return kept;
}

// Each policy worker draws samples for its prompts; they stay where they were drawn.
Result<Trainer::StepSamples> Trainer::draw_round(std::int64_t round, StepTimer& timer) {
  Result<StepPrompts> prompts = feed_->next(steps_done_ + 1, round);
  if (!prompts.ok()) return prompts.status();
  const auto generated = policy_.fetch(&PolicyActor::generate, split(prompts->batches), false);
  if (!generated.ok()) return generated.status();
  StepSamples samples{.shards = std::move(prompts->shards),
                      .batches = select(*generated, &Generated::batch),
                      .summaries = select(*generated, &Generated::summary),
                      .scores = {},
                      .baselines = {},
                      .epoch = prompts->epoch,
                      .rounds = 1,
                      .prompts_drawn = 0};
  samples.prompts_drawn = count_prompts(samples.shards);
  timer.lap("gen");
  if (options_.estimator == AdvantageEstimator::kRemax) {
    const auto greedy = policy_.fetch(&PolicyActor::generate_greedy, split(prompts->batches));
    if (!greedy.ok()) return greedy.status();
    timer.lap("gen_max");  // verl's name for it
    const auto baselines = reward_.fetch(&RewardActor::score, split(select(*greedy, &Generated::batch)), split(prompts->tasks));
    if (!baselines.ok()) return baselines.status();
    for (const std::vector<double>& per_prompt : *baselines) {
      std::vector<double>& per_sample = samples.baselines.emplace_back();
      for (const double baseline : per_prompt) per_sample.insert(per_sample.end(), static_cast<std::size_t>(options_.samples_per_prompt), baseline);
    }
  }
  auto scores = reward_.fetch(&RewardActor::score, split(samples.batches), split(prompts->tasks));
  if (!scores.ok()) return scores.status();
  samples.scores = std::move(*scores);
  timer.lap("reward");
  return samples;
}

}  // namespace rl
