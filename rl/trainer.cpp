#include "rl/trainer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rl/train/process_memory.h"
#include "rl/train/validation_metrics.h"
#include "rl/train/worker_lists.h"
#include "rl/worker/variance_proxy.h"
#include "runtime/core/log.h"

namespace rl {

using runtime::ObjectRef;
using runtime::Result;
using runtime::split;
using runtime::Status;

namespace {

// A role's mini-batches, cut by what the passes of its workers may take.
template <class T>
Result<std::vector<std::vector<MiniBatch>>> cut_for(const WorkerGroup<T>& workers,
                                                    std::vector<std::vector<MiniBatch>> plan,
                                                    std::span<const RolloutSummary> summaries) {
  if (workers.empty()) return plan;
  const auto limits = workers.fetch(&T::micro_batch_limits);
  if (!limits.ok()) return limits.status();
  add_micro_batches(plan, sample_tokens(summaries), *limits);
  return plan;
}

}  // namespace

Result<Metrics> Trainer::take_step() {
  updating_ = false;
  StepTimer timer;
  const Result<StepSamples> samples = draw_samples(timer);
  if (!samples.ok()) return samples.status();

  const Result<Credit> credit = assign_credit(*samples, timer);
  if (!credit.ok()) return credit.status();
  timer.lap("adv");
  if (!options_.rollout_folder.empty()) {
    const Result<std::vector<std::vector<float>>> advantages =
        advantages_of_samples(*samples, *credit);
    if (!advantages.ok()) return advantages.status();
    keep_samples(rollout_dumper_, {options_.rollout_folder, steps_done_ + 1}, samples->batches,
                 samples->tasks, samples->scores, samples->extras, *advantages);
    timer.lap("dump_rollouts");
  }

  const double rate = learning_rate(lr_schedule_, steps_done_);
  const double critic_rate = learning_rate(critic_lr_schedule_, steps_done_);
  const bool policy_waits =
      options_.estimator == AdvantageEstimator::kGae && steps_done_ + 1 < options_.critic_warmup;
  const auto response_tokens = select(samples->summaries, &RolloutSummary::response_tokens);
  const auto learned_tokens = select(samples->summaries, &RolloutSummary::learned_tokens);
  const auto mini_batches =
      plan_mini_batches(samples->shards, samples->samples_of, learned_tokens, credit->use);
  const auto advantages = cut_like(credit->advantages, samples->scores);
  const auto policy_batches = cut_for(policy_, mini_batches, samples->summaries);
  if (!policy_batches.ok()) return policy_batches.status();
  const auto critic_batches = cut_for(critic_, mini_batches, samples->summaries);
  if (!critic_batches.ok()) return critic_batches.status();
  std::vector<UpdatePlan> plans;
  std::vector<UpdatePlan> critic_plans;
  for (std::size_t worker = 0; worker < policy_.size(); ++worker) {
    plans.push_back({advantages[worker], (*policy_batches)[worker], rate, credit->scaling,
                     policy_waits, credit->use[worker]});
    if (critic_.empty()) continue;
    critic_plans.push_back(
        {{}, (*critic_batches)[worker], critic_rate, {}, false, credit->use[worker]});
  }
  updating_ = true;
  Metrics metrics = credit->metrics;
  metrics.merge(reward_metrics(samples->reports));
  metrics.insert(samples->draw_metrics.begin(), samples->draw_metrics.end());
  if (!critic_.empty()) {
    const auto learned = critic_.fetch(&CriticActor::update, split(samples->batches),
                                       split(credit->estimates), split(critic_plans));
    if (!learned.ok()) return learned.status();
    metrics.merge(sum_metrics(*learned));
    metrics["critic/lr"] = critic_rate;
    timer.lap("update_critic");
  }
  if (critic_.empty() || !policy_waits) {
    const auto logprobs =
        options_.kl_loss ? select(samples->references, &Referenced::logprobs) : no_logprobs_;
    const auto taught =
        options_.distills ? select(samples->taught, &Referenced::logprobs) : no_logprobs_;
    const auto updated =
        policy_.fetch(&PolicyActor::update, split(samples->batches), split(logprobs), split(plans),
                      split(credit->estimates), split(taught));
    if (!updated.ok()) return updated.status();
    metrics.merge(sum_metrics(*updated));
    metrics["actor/lr"] = rate;
    timer.lap("update_actor");
  }

  if (const Status told = tell_order(*samples); !told.ok()) return told;
  ++steps_done_;
  epoch_ = samples->epoch;
  const SampleScalars scalars{
      .scores = join<double>(samples->scores),
      .rewards = join<double>(credit->rewards),
      .advantages = credit->advantages,
      .prompt_tokens =
          join<std::int64_t>(select(samples->summaries, &RolloutSummary::prompt_tokens)),
      .response_tokens = join<std::int64_t>(response_tokens),
      .learned_tokens = join<std::int64_t>(learned_tokens),
      .turns = join<std::int64_t>(select(samples->summaries, &RolloutSummary::turns)),
      .stopped = join<std::uint8_t>(select(samples->summaries, &RolloutSummary::stopped)),
      .prompt_tokens_max = options_.prompt_tokens_max};
  finish_variance_proxies(metrics, static_cast<std::int64_t>(scalars.scores.size()));
  metrics.merge(sample_metrics(scalars));
  metrics.merge(balance_metrics(samples->drawn_tokens, tokens_by_worker(samples->summaries)));
  metrics["perf/cpu_memory_used_gb"] = machine_memory_used_gb();
  const double equal_groups =
      equal_score_groups(scalars.scores, join<std::int64_t>(samples->samples_of));
  if (equal_groups >= 0 && !is_per_token(options_.estimator))
    metrics["critic/score/equal_groups"] = equal_groups;
  if (options_.filter_groups.enabled) {
    metrics["train/num_gen_batches"] = static_cast<double>(samples->rounds);
    metrics["train/prompts_kept_ratio"] =
        static_cast<double>(options_.batch_prompts) / static_cast<double>(samples->prompts_drawn);
  }
  metrics.merge(timer.metrics(scalars, static_cast<std::int64_t>(policy_.size())));
  watch_skipped(metrics, static_cast<std::int64_t>(mini_batches.front().size()));
  metrics["training/global_step"] = static_cast<double>(steps_done_);
  metrics["training/epoch"] = static_cast<double>(epoch_);
  return metrics;
}

Status Trainer::fit() { return fit(std::numeric_limits<std::int64_t>::max()); }

// What happens once, before the first step: it is part of no step's time.
Status Trainer::begin() {
  const Status started = start();
  if (!started.ok() || std::exchange(begun_, true)) return started;
  const auto no_logprobs = runtime_.put(std::vector<float>{});
  if (!no_logprobs.ok()) return no_logprobs.status();
  const auto no_estimates = runtime_.put(TokenEstimates{});
  if (!no_estimates.ok()) return no_estimates.status();
  no_logprobs_.assign(policy_.size(), *no_logprobs);
  no_estimates_.assign(policy_.size(), *no_estimates);
  const auto no_samples = runtime_.put(RolloutBatch{});
  if (!no_samples.ok()) return no_samples.status();
  no_samples_ = *no_samples;
  if (steps_done_ == 0 && options_.warm_start.steps > 0) {
    const Status status = warm_start();
    if (!status.ok()) return status.with_context("warm start");
  }
  if (options_.uses_reference()) {
    const Status status = start_reference();
    if (!status.ok()) return status;
  }
  // A run that goes on has the record of it already.
  if (validation_feed_ && options_.validate_first && (steps_done_ == 0 || options_.validate_only)) {
    const Result<Metrics> validation = validate();
    if (!validation.ok()) return validation.status().with_context("validation before training");
    record({steps_done_, total_steps_, epoch_, *validation});
  }
  return {};
}

Status Trainer::fit(std::int64_t steps) {
  const Status started = start();
  if (!started.ok()) return started;
  if (options_.validate_only)
    return validation_feed_
               ? begin()
               : runtime::not_found(
                     "trainer.val_only=true needs validation data: set data.val_files");
  const std::int64_t last = total_steps_ - steps_done_ > steps ? steps_done_ + steps : total_steps_;
  const Status trained = train(last);
  profiler_.finish();
  saver_.end();
  return trained.ok() ? saver_.failure() : trained;
}

Status Trainer::train(std::int64_t last) {
  if (stopped_early()) stopping_ = true;
  while (steps_done_ < last && !stopping_) {
    const nlohmann::ordered_json before = state_json();
    Result<Metrics> metrics = profiled_step();
    if (!metrics.ok()) {
      keep_before_step(before);
      return metrics.status().with_context("step " + std::to_string(steps_done_ + 1));
    }
    const bool validates = validation_feed_ && due(options_.validation_interval);
    if (validates) {
      const Result<Metrics> validation = validate();
      if (!validation.ok()) {
        record({steps_done_, total_steps_, epoch_, std::move(*metrics)});
        keep(state_json());
        return validation.status().with_context("validation after step " +
                                                std::to_string(steps_done_));
      }
      metrics->insert(validation->begin(), validation->end());
    }
    watch(*metrics);
    saver_.check_goal(steps_done_, *metrics, validates);
    const bool best =
        !saver_.losing() && (validates || saves_now()) && saver_.is_best(steps_done_, *metrics);
    saver_.tell(*metrics);
    // Before the checkpoint: who continues from it finds the step in the logs, whenever this run
    // was killed.
    record({steps_done_, total_steps_, epoch_, std::move(*metrics)});
    if (!lost_.ok()) return lost_;
    const bool ends = stopping_ || steps_done_ == last;
    if ((best || saves_now()) && (ends || !saver_.losing())) {
      const bool beside = options_.async_save && !ends;  // no step goes on beside the last one
      saver_.save(steps_done_, best, /*wait=*/!beside,
                  [this, beside] { return copy_state(beside, state_json()); });
    } else {
      saver_.poll();
    }
  }
  return std::exchange(alarmed_, {});
}

// Every `interval` steps, and after the last one.
bool Trainer::due(std::int64_t interval) const {
  return interval > 0 && (steps_done_ % interval == 0 || steps_done_ == total_steps_);
}

void Trainer::record(const StepRecord& record) {
  logger_.write(record);
  if (on_step_) on_step_(record);
}

// Training is worth more than what is kept to look at: a full disk does not end it.
void Trainer::keep_samples(RolloutDumper& dumper, const RolloutDump& dump,
                           const std::vector<ObjectRef<RolloutBatch>>& batches,
                           const std::vector<std::vector<RewardTask>>& tasks,
                           const std::vector<std::vector<double>>& scores,
                           const std::vector<std::vector<std::map<std::string, double>>>& extras,
                           const std::vector<std::vector<float>>& advantages) {
  auto texts = reward_.fetch(&RewardActor::texts, split(batches), split(tasks), split(scores),
                             std::numeric_limits<std::int64_t>::max());
  if (!texts.ok()) {
    LOG(warn, "samples of step {}: {}; training goes on", dump.step, texts.status().message());
    return;
  }
  const std::vector<std::map<std::string, double>> of_each =
      join<std::map<std::string, double>>(extras);
  std::vector<DumpedSample> samples;
  for (SampleText& text : join<SampleText>(*texts)) {
    const std::size_t i = samples.size();
    samples.push_back(
        {.text = std::move(text),
         .advantages = i < advantages.size() ? advantages[i] : std::vector<float>(),
         .extras = i < of_each.size() ? of_each[i] : std::map<std::string, double>()});
  }
  dumper.write(dump, samples);
}

Status Trainer::flush_logs() {
  Status all = logger_.flush();
  for (RolloutDumper* dumper : {&rollout_dumper_, &validation_dumper_}) {
    const Status written = dumper->flush();
    if (!written.ok())
      all = all.ok() ? written : Status(all.code(), all.message() + "\n" + written.message());
  }
  return all;
}

Result<Metrics> Trainer::validate() {
  const Status started = start();
  if (!started.ok()) return started;
  if (!validation_feed_) return runtime::not_found("no validation data: set data.val_files");
  const Result<std::vector<StepPrompts>> rounds = validation_feed_->all();
  if (!rounds.ok()) return rounds.status();
  std::vector<ValidatedPrompt> validated;
  std::vector<SampleText> texts;
  std::vector<double> turns;
  for (const StepPrompts& prompts : *rounds) {
    const auto generated = generate(prompts, /*validation=*/true);
    if (!generated.ok()) return generated.status();
    for (const Generated& part : *generated)
      turns.insert(turns.end(), part.summary.turns.begin(), part.summary.turns.end());
    const auto batches = select(*generated, &Generated::batch);
    const auto reports = reward_.fetch(&RewardActor::score, split(batches), split(prompts.tasks));
    if (!reports.ok()) return reports.status();
    const auto scores = select(*reports, &RewardReport::scores);
    for (std::size_t worker = 0; worker < scores.size(); ++worker) {
      const std::vector<RewardTask>& tasks = prompts.tasks[worker];
      if (tasks.empty()) continue;
      const std::size_t samples_per_prompt = scores[worker].size() / tasks.size();
      for (std::size_t i = 0; i < scores[worker].size(); ++i) {
        if (i % samples_per_prompt == 0)
          validated.push_back({tasks[i / samples_per_prompt].data_source, {}});
        if ((*reports)[worker].left_out[i] != 0) continue;
        validated.back().values["reward"].push_back(scores[worker][i]);
        const RewardReport& report = (*reports)[worker];
        for (const auto& [name, values] : report.extra)
          validated.back().values[name].push_back(values[i]);
        // As verl's dapo manager has it: how right an answer is, whatever its length took off.
        if (!report.unpenalized.empty() && !report.extra.contains("acc"))
          validated.back().values["acc"].push_back(report.unpenalized[i]);
      }
    }
    if (!options_.validation_folder.empty()) {
      keep_samples(validation_dumper_,
                   {options_.validation_folder, steps_done_, &prompts != &rounds->front()}, batches,
                   prompts.tasks, scores, extras_of(*reports), {});
    }
    const std::int64_t missing = options_.shown_samples - static_cast<std::int64_t>(texts.size());
    if (missing <= 0) continue;
    const auto shown = reward_.fetch(&RewardActor::texts, split(batches), split(prompts.tasks),
                                     split(scores), missing);
    if (!shown.ok()) return shown.status();
    for (SampleText& text : join<SampleText>(*shown)) {
      if (static_cast<std::int64_t>(texts.size()) < options_.shown_samples)
        texts.push_back(std::move(text));
    }
  }
  if (first_samples_.empty()) first_samples_ = texts;
  last_samples_ = std::move(texts);
  Metrics metrics = validation_metrics(validated);
  add_distribution(metrics, "val-aux/num_turns", turns);
  return metrics;
}

}  // namespace rl
