#include "rl/trainer.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "rl/algo/group_advantage.h"
#include "rl/train/rollout_dump.h"
#include "rl/train/step_metrics.h"
#include "runtime/core/log.h"

namespace rl {
namespace {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;
using runtime::Status;

// One list per worker <-> one list.
template <class To, class From>
std::vector<To> join(const std::vector<std::vector<From>>& parts) {
  std::vector<To> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Of nothing each part is nothing.
template <class T, class Part>
std::vector<std::vector<T>> cut_like(const std::vector<T>& all, const std::vector<std::vector<Part>>& parts) {
  if (all.empty()) return std::vector<std::vector<T>>(parts.size());
  std::vector<std::vector<T>> cut;
  auto begin = all.begin();
  for (const auto& part : parts) {
    const auto end = begin + static_cast<std::ptrdiff_t>(part.size());
    cut.emplace_back(begin, end);
    begin = end;
  }
  return cut;
}

template <class T, class Member>
auto select(const std::vector<T>& items, Member member) {
  std::vector<std::decay_t<decltype(std::invoke(member, items.front()))>> selected;
  for (const T& item : items) selected.push_back(std::invoke(member, item));
  return selected;
}

// Which prompt of the step each sample answers: responses to one prompt are a group.
std::vector<std::int64_t> sample_groups(const std::vector<PromptShard>& shards, std::int64_t samples_per_prompt) {
  std::vector<std::int64_t> groups;
  for (const PromptShard& shard : shards) {
    for (const std::int64_t prompt : shard.prompts) groups.insert(groups.end(), static_cast<std::size_t>(samples_per_prompt), prompt);
  }
  return groups;
}

}  // namespace

Result<Metrics> Trainer::step() {
  const Status ready = begin();
  if (!ready.ok()) return ready;
  StepTimer timer;
  Result<StepPrompts> prompts = feed_->next(steps_done_ + 1);
  if (!prompts.ok()) return prompts.status();

  // Each policy worker draws samples for its prompts; they stay where they were drawn.
  const auto generated = policy_.fetch(&PolicyActor::generate, split(prompts->batches), false);
  if (!generated.ok()) return generated.status();
  const std::vector<ObjectRef<RolloutBatch>> batches = select(*generated, &Generated::batch);
  const std::vector<RolloutSummary> summaries = select(*generated, &Generated::summary);
  timer.lap("gen");

  const auto scores = reward_.fetch(&RewardActor::score, split(batches), split(prompts->tasks));
  if (!scores.ok()) return scores.status();
  timer.lap("reward");

  if (!options_.rollout_folder.empty()) {
    if (const Status dumped = dump_samples(options_.rollout_folder, steps_done_ + 1, batches, prompts->tasks); !dumped.ok()) return dumped;
  }

  std::vector<Referenced> references;
  if (options_.uses_reference()) {
    auto referenced = reference_.fetch(&ReferenceActor::score, split(batches));
    if (!referenced.ok()) return referenced.status();
    references = std::move(*referenced);
    timer.lap("ref");
  }

  const auto reference_logprobs = options_.uses_reference() ? select(references, &Referenced::logprobs) : no_logprobs_;
  const auto rewards = penalize(*scores, references);
  if (!rewards.ok()) return rewards.status();
  const Result<Credit> credit = assign_credit(*prompts, batches, *scores, *rewards, reference_logprobs);
  if (!credit.ok()) return credit.status();
  timer.lap("adv");

  const double rate = learning_rate(lr_schedule_, steps_done_);
  const double critic_rate = learning_rate(critic_lr_schedule_, steps_done_);
  const bool policy_waits = options_.estimator == AdvantageEstimator::kGae && steps_done_ + 1 < options_.critic_warmup;
  const auto mini_batches = plan_mini_batches(prompts->shards, options_.samples_per_prompt, select(summaries, &RolloutSummary::response_tokens));
  const auto advantage_shares = cut_like(credit->advantages, *rewards);
  std::vector<UpdatePlan> plans;
  std::vector<UpdatePlan> critic_plans;
  for (std::size_t worker = 0; worker < policy_.size(); ++worker) {
    plans.push_back({advantage_shares[worker], mini_batches[worker], rate, credit->scaling, policy_waits});
    critic_plans.push_back({{}, mini_batches[worker], critic_rate, {}, false});
  }
  Metrics metrics = credit->metrics;
  if (!critic_.empty()) {
    const auto learned = critic_.fetch(&CriticActor::update, split(batches), split(credit->estimates), split(critic_plans));
    if (!learned.ok()) return learned.status();
    metrics.merge(sum_metrics(*learned));
    metrics["critic/lr"] = critic_rate;
    timer.lap("update_critic");
  }
  if (critic_.empty() || !policy_waits) {
    const auto updated = policy_.fetch(&PolicyActor::update, split(batches), split(options_.kl_loss ? reference_logprobs : no_logprobs_), split(plans), split(credit->estimates));
    if (!updated.ok()) return updated.status();
    metrics.merge(sum_metrics(*updated));
    metrics["actor/lr"] = rate;
    timer.lap("update_actor");
  }

  ++steps_done_;
  epoch_ = prompts->epoch;
  const SampleScalars samples{.scores = join<double>(*scores),
                              .rewards = join<double>(*rewards),
                              .advantages = credit->advantages,
                              .prompt_tokens = join<std::int64_t>(select(summaries, &RolloutSummary::prompt_tokens)),
                              .response_tokens = join<std::int64_t>(select(summaries, &RolloutSummary::response_tokens)),
                              .stopped = join<std::uint8_t>(select(summaries, &RolloutSummary::stopped))};
  metrics.merge(sample_metrics(samples));
  metrics.merge(timer.metrics(samples, static_cast<std::int64_t>(policy_.size())));
  for (const char* role : {"actor", "critic"}) {
    const auto skipped = metrics.find(std::string(role) + "/skipped_updates");
    if (skipped == metrics.end() || skipped->second == 0) continue;
    LOG(warn, "step {}: {} update(s) of the {} left out, since their gradient was not finite: is its optim.lr too high?", steps_done_, skipped->second, role);
  }
  metrics["training/global_step"] = static_cast<double>(steps_done_);
  metrics["training/epoch"] = static_cast<double>(epoch_);
  return metrics;
}

Result<Trainer::Credit> Trainer::assign_credit(const StepPrompts& prompts, const std::vector<ObjectRef<RolloutBatch>>& batches,
                                               const std::vector<std::vector<double>>& scores, const std::vector<std::vector<double>>& rewards,
                                               const std::vector<ObjectRef<std::vector<float>>>& reference_logprobs) const {
  if (options_.estimator == AdvantageEstimator::kGrpo) {
    return Credit{.advantages = grpo_advantages(join<float>(rewards), sample_groups(prompts.shards, options_.samples_per_prompt), options_.normalize_by_std),
                  .estimates = no_estimates_,
                  .scaling = {},
                  .metrics = {}};
  }
  const auto& logprobs = options_.kl_in_reward ? reference_logprobs : no_logprobs_;
  const auto estimated = critic_.empty() ? policy_.fetch(&PolicyActor::estimate, split(batches), split(logprobs), split(scores))
                                         : critic_.fetch(&CriticActor::estimate, split(batches), split(logprobs), split(scores));
  if (!estimated.ok()) return estimated.status();
  EstimateSummary all;
  for (const Estimated& part : *estimated) all.add(part.summary);
  return Credit{.advantages = {}, .estimates = select(*estimated, &Estimated::estimates), .scaling = AdvantageScaling::whitening(all.advantages), .metrics = all.metrics()};
}

// KL in the reward: each response's score less the coefficient times its estimated KL to the reference.
Result<std::vector<std::vector<double>>> Trainer::penalize(const std::vector<std::vector<double>>& scores,
                                                           const std::vector<Referenced>& references) const {
  std::vector<std::vector<double>> rewards = scores;
  if (!options_.kl_in_reward) return rewards;
  for (std::size_t worker = 0; worker < rewards.size(); ++worker) {
    const std::vector<double>& penalties = references[worker].kl_penalties;
    if (penalties.size() != rewards[worker].size()) return runtime::internal_error("the reference scored another number of samples");
    for (std::size_t i = 0; i < penalties.size(); ++i) rewards[worker][i] -= options_.kl_in_reward_coefficient * penalties[i];
  }
  return rewards;
}

Status Trainer::fit() { return fit(std::numeric_limits<std::int64_t>::max()); }

// What happens once, before the first step: it is part of no step's time.
Status Trainer::begin() {
  if (std::exchange(begun_, true)) return {};
  const auto no_logprobs = runtime_.put(std::vector<float>{});
  if (!no_logprobs.ok()) return no_logprobs.status();
  const auto no_estimates = runtime_.put(TokenEstimates{});
  if (!no_estimates.ok()) return no_estimates.status();
  no_logprobs_.assign(policy_.size(), *no_logprobs);
  no_estimates_.assign(policy_.size(), *no_estimates);
  if (steps_done_ == 0 && options_.warm_start.steps > 0) {
    const Status status = warm_start();
    if (!status.ok()) return status.with_context("warm start");
  }
  if (options_.uses_reference()) {
    const Status status = start_reference();
    if (!status.ok()) return status;
  }
  if (validation_feed_ && options_.validate_first) {
    const Result<Metrics> validation = validate();
    if (!validation.ok()) return validation.status().with_context("validation before training");
    record({steps_done_, total_steps_, epoch_, *validation});
  }
  return {};
}

Status Trainer::fit(std::int64_t steps) {
  if (options_.validate_only) return validation_feed_ ? begin() : runtime::not_found("trainer.val_only=true needs validation data: set data.val_files");
  const std::int64_t last = total_steps_ - steps_done_ > steps ? steps_done_ + steps : total_steps_;
  while (steps_done_ < last) {
    Result<Metrics> metrics = step();
    if (!metrics.ok()) return metrics.status().with_context("step " + std::to_string(steps_done_ + 1));
    if (validation_feed_ && due(options_.validation_interval)) {
      const Result<Metrics> validation = validate();
      if (!validation.ok()) return validation.status().with_context("validation after step " + std::to_string(steps_done_));
      metrics->insert(validation->begin(), validation->end());
    }
    if (due(options_.save_interval)) {
      StepTimer timer;
      const Result<std::filesystem::path> saved = save_checkpoint();
      timer.lap("save_checkpoint");
      (*metrics)["timing_s/save_checkpoint"] = timer.seconds("save_checkpoint");
      // Training goes on: what has been learned so far is worth more than stopping at once.
      if (!saved.ok()) {
        LOG(error, "{}; training goes on", saved.status().message());
        save_failure_ = saved.status();
      } else {
        save_failure_ = Status();
      }
    }
    record({steps_done_, total_steps_, epoch_, std::move(*metrics)});
  }
  return save_failure_;
}

// Every `interval` steps, and after the last one.
bool Trainer::due(std::int64_t interval) const {
  return interval > 0 && (steps_done_ % interval == 0 || steps_done_ == total_steps_);
}

void Trainer::record(const StepRecord& record) {
  logger_.write(record);
  if (on_step_) on_step_(record);
}

Status Trainer::dump_samples(const std::filesystem::path& folder, std::int64_t step, const std::vector<ObjectRef<RolloutBatch>>& batches,
                             const std::vector<std::vector<RewardTask>>& tasks, bool append) {
  const auto texts = reward_.fetch(&RewardActor::texts, split(batches), split(tasks), std::numeric_limits<std::int64_t>::max());
  if (!texts.ok()) return texts.status();
  return write_rollout_dump(folder, step, join<SampleText>(*texts), append);
}

Result<Metrics> Trainer::validate() {
  if (!validation_feed_) return runtime::not_found("no validation data: set data.val_files");
  const Result<std::vector<StepPrompts>> rounds = validation_feed_->all();
  if (!rounds.ok()) return rounds.status();
  std::map<std::string, std::vector<double>> by_source;
  std::vector<SampleText> texts;
  std::int64_t samples_per_prompt = 1;
  for (const StepPrompts& prompts : *rounds) {
    const auto generated = policy_.fetch(&PolicyActor::generate, split(prompts.batches), true);
    if (!generated.ok()) return generated.status();
    const auto batches = select(*generated, &Generated::batch);
    const auto scores = reward_.fetch(&RewardActor::score, split(batches), split(prompts.tasks));
    if (!scores.ok()) return scores.status();
    for (std::size_t worker = 0; worker < scores->size(); ++worker) {
      const std::vector<RewardTask>& tasks = prompts.tasks[worker];
      if (tasks.empty()) continue;
      samples_per_prompt = static_cast<std::int64_t>((*scores)[worker].size() / tasks.size());
      for (std::size_t i = 0; i < (*scores)[worker].size(); ++i) {
        by_source[tasks[i / static_cast<std::size_t>(samples_per_prompt)].data_source].push_back((*scores)[worker][i]);
      }
    }
    if (!options_.validation_folder.empty()) {
      if (const Status dumped = dump_samples(options_.validation_folder, steps_done_, batches, prompts.tasks, &prompts != &rounds->front()); !dumped.ok()) return dumped;
    }
    const std::int64_t missing = options_.shown_samples - static_cast<std::int64_t>(texts.size());
    if (missing <= 0) continue;
    const auto shown = reward_.fetch(&RewardActor::texts, split(batches), split(prompts.tasks), missing);
    if (!shown.ok()) return shown.status();
    for (SampleText& text : join<SampleText>(*shown)) {
      if (static_cast<std::int64_t>(texts.size()) < options_.shown_samples) texts.push_back(std::move(text));
    }
  }
  if (first_samples_.empty()) first_samples_ = texts;
  last_samples_ = std::move(texts);
  Metrics metrics;
  for (const auto& [source, scores] : by_source) {
    double sum = 0.0;
    for (const double score : scores) sum += score;
    metrics["val-core/" + (source.empty() ? "data" : source) + "/reward/mean@" + std::to_string(samples_per_prompt)] =
        sum / static_cast<double>(scores.size());
  }
  return metrics;
}

}  // namespace rl
