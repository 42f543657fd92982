// How a step comes by its samples: generation, scores, and what ReMax compares them with; with
// dynamic sampling in as many rounds as it takes.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "rl/train/group_filter.h"
#include "rl/train/worker_lists.h"
#include "rl/trainer.h"

namespace rl {

using runtime::Result;
using runtime::split;

namespace {

// How many samples of each prompt stay. Of a group whose baseline needs others, a sample alone goes
// as well: `fewest` stay, or none.
std::vector<std::int64_t> count_kept(std::vector<std::uint8_t>& left_out, std::size_t prompts,
                                     std::size_t samples_per_prompt, std::int64_t fewest) {
  std::vector<std::int64_t> kept(prompts, 0);
  for (std::size_t prompt = 0; prompt < prompts; ++prompt) {
    const auto begin = left_out.begin() + static_cast<std::ptrdiff_t>(prompt * samples_per_prompt);
    const auto end = begin + static_cast<std::ptrdiff_t>(samples_per_prompt);
    kept[prompt] = std::count(begin, end, std::uint8_t{0});
    if (kept[prompt] >= fewest) continue;
    std::fill(begin, end, std::uint8_t{1});
    kept[prompt] = 0;
  }
  return kept;
}

// Where the greedy response has no score, its prompt's samples have nothing to be compared with.
void mark_without_baseline(std::vector<RewardReport>& reports,
                           const std::vector<RewardReport>& greedy,
                           std::int64_t samples_per_prompt) {
  for (std::size_t worker = 0; worker < greedy.size(); ++worker) {
    for (std::size_t prompt = 0; prompt < greedy[worker].left_out.size(); ++prompt) {
      if (greedy[worker].left_out[prompt] == 0) continue;
      const auto begin = reports[worker].left_out.begin() +
                         static_cast<std::ptrdiff_t>(prompt) * samples_per_prompt;
      std::fill(begin, begin + samples_per_prompt, std::uint8_t{1});
    }
  }
}

// What a prompt's samples are compared by with dynamic sampling.
std::vector<std::vector<double>> filter_values(const std::vector<RewardReport>& reports,
                                               const std::string& metric) {
  std::vector<std::vector<double>> values;
  for (const RewardReport& report : reports) {
    const auto accuracy = report.extra.find("acc");
    std::vector<double>& of_worker = values.emplace_back(report.scores);
    if (metric != "acc" && metric != "score") continue;
    if (!report.unpenalized.empty()) of_worker = report.unpenalized;
    if (metric == "score" || accuracy == report.extra.end()) continue;
    for (std::size_t i = 0; i < of_worker.size(); ++i) {
      if (!std::isnan(accuracy->second[i])) of_worker[i] = accuracy->second[i];
    }
  }
  return values;
}

template <class T>
void keep_unmarked(std::vector<T>& values, const std::vector<std::uint8_t>& marks) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != 0) continue;
    if (next != i) values[next] = std::move(values[i]);  // moved to itself a list would be empty
    ++next;
  }
  values.resize(next);
}

}  // namespace

Result<Trainer::StepSamples> Trainer::draw_samples(StepTimer& timer) {
  Result<StepSamples> samples =
      options_.filter_groups.enabled ? draw_informative(timer) : draw_round(0, timer);
  if (!samples.ok() || !refers_later()) return samples;
  runtime::Status status =
      options_.sample_store.enabled ? mix_replayed(*samples) : runtime::Status();
  if (status.ok()) status = balance(*samples).status();
  timer.lap("gen");
  if (status.ok()) status = refer(*samples, timer);
  if (!status.ok()) return status;
  return samples;
}

// Round after round until there are prompts enough whose responses did not all score the same.
Result<Trainer::StepSamples> Trainer::draw_informative(StepTimer& timer) {
  StepSamples kept;
  for (std::int64_t round = 0;; ++round) {
    const std::int64_t missing = options_.batch_prompts - count_prompts(kept.shards);
    if (missing == 0) break;
    if (options_.filter_groups.rounds_max > 0 && round == options_.filter_groups.rounds_max) {
      return runtime::resource_exhausted("after " + std::to_string(round) +
                                         " rounds of generation " + std::to_string(missing) +
                                         " of " + std::to_string(options_.batch_prompts) +
                                         " prompts with responses of different scores are missing: "
                                         "the task may be too easy or too hard; raise "
                                         "algorithm.filter_groups.max_num_gen_batches, "
                                         "data.gen_batch_size or actor_rollout_ref.rollout.n");
    }
    const Result<StepSamples> fresh = draw_round(round, timer);
    if (!fresh.ok()) return fresh.status();
    const auto rows = informative_prompts(
        fresh->shards, filter_values(fresh->reports, options_.filter_groups.metric),
        select(fresh->reports, &RewardReport::left_out), options_.samples_per_prompt, missing);
    if (kept.batches.empty()) kept.batches.assign(policy_.size(), no_samples_);
    const auto gathered = policy_.fetch(&PolicyActor::gather, split(kept.batches),
                                        split(fresh->batches), split(rows));
    if (!gathered.ok()) return gathered.status();
    kept.batches = select(*gathered, &Generated::batch);
    kept.summaries = select(*gathered, &Generated::summary);
    append_prompts(kept.shards, fresh->shards, rows);
    kept.scores.resize(policy_.size());
    kept.tasks.resize(policy_.size());
    kept.samples_of.resize(policy_.size());
    kept.reports.insert(kept.reports.end(), fresh->reports.begin(), fresh->reports.end());
    kept.baselines.resize(fresh->baselines.size());
    kept.components.resize(fresh->components.size());
    kept.extras.resize(fresh->extras.size());
    const auto n = static_cast<std::ptrdiff_t>(options_.samples_per_prompt);
    for (std::size_t worker = 0; worker < rows.size(); ++worker) {
      for (const std::int64_t row : rows[worker]) {
        kept.tasks[worker].push_back(fresh->tasks[worker][static_cast<std::size_t>(row)]);
        kept.samples_of[worker].push_back(n);
        const auto copy = [&](auto& to, const auto& from) {
          to.insert(to.end(), from.begin() + row * n, from.begin() + (row + 1) * n);
        };
        copy(kept.scores[worker], fresh->scores[worker]);
        if (!fresh->baselines.empty()) copy(kept.baselines[worker], fresh->baselines[worker]);
        if (!fresh->components.empty()) copy(kept.components[worker], fresh->components[worker]);
        if (!fresh->extras.empty()) copy(kept.extras[worker], fresh->extras[worker]);
      }
    }
    kept.prompts_drawn += fresh->prompts_drawn;
    kept.draw_metrics = sum_metrics({kept.draw_metrics, fresh->draw_metrics});
    kept.rounds = round + 1;
    kept.epoch = fresh->epoch;
    timer.lap("gen");
  }
  cut_mini_batches(kept.shards, options_.mini_batch_prompts);
  return kept;
}

// Each policy worker draws samples for its prompts; they stay where they were drawn.
Result<Trainer::Drawn> Trainer::draw_now(std::int64_t round) {
  Result<StepPrompts> prompts = next_prompts(steps_done_ + 1, round);
  if (!prompts.ok()) return prompts.status();
  auto generated = generate(*prompts, /*validation=*/false);
  if (!generated.ok()) return generated.status();
  return Drawn{std::move(*prompts), std::move(*generated), 0};
}

// A reward that can begins with what is there while the rest is drawn, so that a scorer which hangs
// costs what is left of its time limit then.
Result<std::vector<Generated>> Trainer::generate(const StepPrompts& prompts, bool validation) {
  if (!scores_early_)
    return policy_.fetch(&PolicyActor::generate, split(prompts.batches), validation);
  std::vector<runtime::ActorHandle<RewardActor>> rewards;
  for (std::size_t worker = 0; worker < policy_.size(); ++worker)
    rewards.push_back(reward_.member(worker));
  return policy_.fetch(&PolicyActor::generate_for, split(prompts.batches), validation,
                       split(prompts.tasks), split(rewards));
}

Result<Trainer::StepSamples> Trainer::draw_round(std::int64_t round, StepTimer& timer) {
  StepSamples samples;
  Result<Drawn> drawn = options_.partial_rollouts ? draw_partially(samples.draw_metrics)
                        : rollouts_.empty()       ? draw_now(round)
                                                  : draw_ahead(timer);
  if (!drawn.ok()) return drawn.status();
  StepPrompts* const prompts = &drawn->prompts;
  const std::vector<Generated>* const generated = &drawn->generated;
  samples.shards = std::move(prompts->shards);
  samples.batches = select(*generated, &Generated::batch);
  samples.summaries = select(*generated, &Generated::summary);
  samples.draw_metrics.merge(sum_metrics(select(samples.summaries, &RolloutSummary::metrics)));
  if (!rollouts_.empty()) {
    const std::vector<std::int64_t> drew(
        join<std::int64_t>(select(samples.summaries, &RolloutSummary::response_tokens)).size(),
        steps_done_ - drawn->updates_since);
    add_staleness(samples.draw_metrics, {.oldest = drew, .newest = drew}, steps_done_);
  }
  samples.epoch = prompts->epoch;
  samples.rows = std::move(prompts->rows);
  samples.rounds = 1;
  samples.prompts_drawn = count_prompts(samples.shards);
  timer.lap("gen");
  std::vector<RewardReport> greedy_reports;
  if (options_.estimator == AdvantageEstimator::kRemax) {
    const auto greedy = policy_.fetch(&PolicyActor::generate_greedy, split(prompts->batches));
    if (!greedy.ok()) return greedy.status();
    timer.lap("gen_max");  // verl's name for it
    auto baselines = reward_.fetch(&RewardActor::score, split(select(*greedy, &Generated::batch)),
                                   split(prompts->tasks));
    if (!baselines.ok()) return baselines.status();
    greedy_reports = std::move(*baselines);
    for (const RewardReport& report : greedy_reports) {
      std::vector<double>& per_sample = samples.baselines.emplace_back();
      for (const double baseline : report.scores)
        per_sample.insert(per_sample.end(), static_cast<std::size_t>(options_.samples_per_prompt),
                          baseline);
    }
  }
  samples.tasks = std::move(prompts->tasks);
  for (const std::vector<RewardTask>& tasks : samples.tasks)
    samples.samples_of.emplace_back(tasks.size(), options_.samples_per_prompt);
  const runtime::Status scored = score(samples, greedy_reports, timer);
  if (!scored.ok()) return scored;
  return samples;
}

// Scoring goes on while the reference computes, so that a scorer that waits (for a server, for one
// that hangs) costs less. With dynamic sampling and a sample store the reference waits for what is
// trained on.
runtime::Status Trainer::score(StepSamples& samples, const std::vector<RewardReport>& greedy,
                               StepTimer& timer) {
  const auto scoring =
      reward_.call(&RewardActor::score, split(samples.batches), split(samples.tasks));
  PromptPlaces places;
  if (!refers_later()) {
    Result<PromptPlaces> moved = balance(samples);
    if (!moved.ok()) return moved.status();
    places = std::move(*moved);
    if (runtime::Status referred = refer(samples, timer); !referred.ok()) return referred;
  }
  auto reports = runtime_.objects().gather(scoring);
  if (!reports.ok()) return reports.status();
  mark_without_baseline(*reports, greedy, options_.samples_per_prompt);
  move_reports(*reports, places);
  samples.reports = std::move(*reports);
  samples.scores = select(samples.reports, &RewardReport::scores);
  timer.lap("reward");
  if (!options_.rollout_folder.empty()) samples.extras = extras_of(samples.reports);
  if (runtime::Status taken = take_components(samples); !taken.ok()) return taken;
  const auto is_incomplete = [](const RewardReport& report) {
    return std::count(report.left_out.begin(), report.left_out.end(), std::uint8_t{1}) > 0;
  };
  if (std::none_of(samples.reports.begin(), samples.reports.end(), is_incomplete)) return {};
  if (options_.filter_groups.enabled)
    return {};  // another prompt takes the place of one that lacks a score
  return leave_out_unscored(samples);
}

// What an estimator wants to know of the reward beside its score.
runtime::Status Trainer::take_components(StepSamples& samples) const {
  const std::vector<std::string> keys = component_keys();
  if (keys.empty()) return {};
  const bool score_is_accuracy =
      options_.estimator == AdvantageEstimator::kCodapo && keys.front() == "acc";
  for (const RewardReport& report : samples.reports) {
    std::vector<std::vector<double>>& of_worker =
        samples.components.emplace_back(report.scores.size());
    for (const std::string& key : keys) {
      const auto found = report.extra.find(key);
      for (std::size_t i = 0; i < report.scores.size(); ++i) {
        if (report.left_out[i] != 0) {
          of_worker[i].push_back(0.0);
          continue;
        }
        if (score_is_accuracy && (found == report.extra.end() || std::isnan(found->second[i]))) {
          of_worker[i].push_back(report.scores[i]);
          continue;
        }
        if (found == report.extra.end() || std::isnan(found->second[i])) {
          std::string given;
          for (const auto& [name, values] : report.extra) {
            if (!std::isnan(values[i])) given += (given.empty() ? "" : ", ") + name;
          }
          return runtime::invalid_argument(
              std::string(options_.estimator == AdvantageEstimator::kGdpo
                              ? "algorithm.gdpo_reward_keys"
                              : "algorithm.codapo_accuracy_key") +
              ": the reward gave no number '" + key + "' for a sample; it gives " +
              (given.empty() ? "a score alone: return a dictionary with one" : given));
        }
        of_worker[i].push_back(found->second[i]);
      }
    }
  }
  return {};
}

runtime::Status Trainer::refer(StepSamples& samples, StepTimer& timer) {
  if (options_.uses_reference()) {
    auto referenced = reference_.fetch(&ReferenceActor::score, split(samples.batches));
    if (!referenced.ok()) return referenced.status();
    samples.references = std::move(*referenced);
    timer.lap("ref");
  }
  return options_.distills ? teach(samples, timer) : runtime::Status();
}

// Samples that have no score are left out of all that follows, and of what a reference or a teacher
// has said already.
runtime::Status Trainer::leave_out_unscored(StepSamples& samples) {
  const auto samples_per_prompt = static_cast<std::size_t>(options_.samples_per_prompt);
  // GRPO and GPG do with a single response, but not as a remainder: its advantage would be of
  // another scale than the others'. So it may be with an estimator that nobody knows.
  const bool compares = options_.estimator == AdvantageEstimator::kGrpo ||
                        options_.estimator == AdvantageEstimator::kGdpo ||
                        options_.estimator == AdvantageEstimator::kGpg ||
                        options_.estimator == AdvantageEstimator::kOwn;
  const std::int64_t size_min = compares ? 2 : group_size_min(options_.estimator);
  const std::int64_t fewest = std::min(size_min, options_.samples_per_prompt);
  std::vector<std::vector<std::uint8_t>> left_out =
      select(samples.reports, &RewardReport::left_out);
  for (std::size_t worker = 0; worker < left_out.size(); ++worker) {
    samples.samples_of[worker] =
        count_kept(left_out[worker], samples.tasks[worker].size(), samples_per_prompt, fewest);
  }
  // Of what several teachers say together any of them can.
  for (auto [group, scores] :
       {std::pair{&reference_, &samples.references},
        std::pair{teachers_.empty() ? nullptr : &teachers_.front().group, &samples.taught}}) {
    if (scores->empty()) continue;
    auto rest = group->fetch(&ReferenceActor::without, split(samples.batches),
                             split(select(*scores, &Referenced::logprobs)),
                             split(select(*scores, &Referenced::kl_penalties)), split(left_out));
    if (!rest.ok()) return rest.status();
    *scores = std::move(*rest);
  }
  const auto kept = reward_.fetch(&RewardActor::without, split(samples.batches), split(left_out));
  if (!kept.ok()) return kept.status();
  samples.batches = select(*kept, &Generated::batch);
  samples.summaries = select(*kept, &Generated::summary);
  std::size_t left = 0;
  for (std::size_t worker = 0; worker < left_out.size(); ++worker) {
    keep_unmarked(samples.scores[worker], left_out[worker]);
    if (!samples.baselines.empty()) keep_unmarked(samples.baselines[worker], left_out[worker]);
    if (!samples.components.empty()) keep_unmarked(samples.components[worker], left_out[worker]);
    if (!samples.extras.empty()) keep_unmarked(samples.extras[worker], left_out[worker]);
    left += samples.scores[worker].size();
  }
  if (left == 0)
    return runtime::task_failed(
        "no sample of the step has a score to learn from: see the warnings on the reward above");
  return {};
}

}  // namespace rl
