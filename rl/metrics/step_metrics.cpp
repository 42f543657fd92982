#include "rl/metrics/step_metrics.h"

#include <algorithm>
#include <numeric>

#include "rl/profile/recorder.h"

namespace rl {
namespace {

template <class T>
std::vector<double> as_doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

double total(const std::vector<std::int64_t>& values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
}

}  // namespace

std::int64_t SampleScalars::tokens() const {
  return static_cast<std::int64_t>(total(prompt_tokens) + total(response_tokens));
}

Metrics sample_metrics(const SampleScalars& samples) {
  Metrics metrics;
  add_distribution(metrics, "critic/score", samples.scores);
  add_distribution(metrics, "critic/rewards", samples.rewards);
  // One a response here, one a token of it there. verl's means are over tokens, and its returns are
  // the advantages where there is no critic.
  if (!samples.advantages.empty()) {
    add_distribution(metrics, "critic/advantages", as_doubles(samples.advantages));
    double sum = 0.0;
    const std::vector<std::int64_t>& tokens =
        samples.learned_tokens.empty() ? samples.response_tokens : samples.learned_tokens;
    for (std::size_t i = 0; i < samples.advantages.size(); ++i)
      sum += samples.advantages[i] * static_cast<double>(tokens[i]);
    metrics["critic/advantages/mean"] = sum / std::max(1.0, total(tokens));
    for (const char* what : {"mean", "max", "min"})
      metrics[std::string("critic/returns/") + what] =
          metrics[std::string("critic/advantages/") + what];
  }
  add_distribution(metrics, "response_length", as_doubles(samples.response_tokens));
  add_distribution(metrics, "prompt_length", as_doubles(samples.prompt_tokens));
  add_distribution(metrics, "num_turns", as_doubles(samples.turns));
  if (!samples.stopped.empty()) {
    const auto cut = std::count(samples.stopped.begin(), samples.stopped.end(), std::uint8_t{0});
    metrics["response_length/clip_ratio"] =
        static_cast<double>(cut) / static_cast<double>(samples.stopped.size());
  }
  if (!samples.prompt_tokens.empty() && samples.prompt_tokens_max > 0) {
    const auto full = std::count(samples.prompt_tokens.begin(), samples.prompt_tokens.end(),
                                 samples.prompt_tokens_max);
    metrics["prompt_length/clip_ratio"] =
        static_cast<double>(full) / static_cast<double>(samples.prompt_tokens.size());
  }
  if (!samples.response_tokens.empty()) {
    // Every request is answered with a token at least, or the step fails: nothing is aborted.
    metrics["response/aborted_ratio"] = 0.0;
    for (const char* what : {"mean", "max", "min", "clip_ratio"}) {
      const auto found = metrics.find(std::string("response_length/") + what);
      if (found != metrics.end())
        metrics[std::string("response_length_non_aborted/") + what] = found->second;
    }
  }
  return metrics;
}

Metrics balance_metrics(const std::vector<std::int64_t>& generated_by_worker,
                        const std::vector<std::int64_t>& trained_by_worker) {
  if (generated_by_worker.empty() || trained_by_worker.empty()) return {};
  const auto [least, most] =
      std::minmax_element(generated_by_worker.begin(), generated_by_worker.end());
  const auto [least_trained, most_trained] =
      std::minmax_element(trained_by_worker.begin(), trained_by_worker.end());
  return {{"global_seqlen/min", static_cast<double>(*least)},
          {"global_seqlen/max", static_cast<double>(*most)},
          {"global_seqlen/minmax_diff", static_cast<double>(*most - *least)},
          {"global_seqlen/balanced_min", static_cast<double>(*least_trained)},
          {"global_seqlen/balanced_max", static_cast<double>(*most_trained)},
          {"global_seqlen/mean",
           total(generated_by_worker) / static_cast<double>(generated_by_worker.size())}};
}

void add_staleness(Metrics& metrics, const VersionSpans& versions, std::int64_t steps) {
  std::vector<double> spans, staleness, worst;
  for (std::size_t i = 0; i < versions.oldest.size(); ++i) {
    spans.push_back(static_cast<double>(versions.newest[i] - versions.oldest[i] + 1));
    staleness.push_back(static_cast<double>(steps - versions.newest[i]));
    worst.push_back(static_cast<double>(steps - versions.oldest[i]));
  }
  add_distribution(metrics, "training/off_policy/trajectory_spans", spans);
  add_distribution(metrics, "training/off_policy/trajectory_staleness", staleness);
  add_distribution(metrics, "training/off_policy/trajectory_staleness_worst", worst);
}

Metrics sum_metrics(const std::vector<Metrics>& parts) {
  Metrics sum;
  for (const Metrics& part : parts) {
    for (const auto& [name, value] : part) {
      double& so_far = sum[name];
      so_far = name.starts_with("perf/max_") ? std::max(so_far, value) : so_far + value;
    }
  }
  return sum;
}

void StepTimer::lap(const std::string& name) {
  const Clock::time_point now = Clock::now();
  const auto ns = [](Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  };
  profile::add(name, profile::SpanKind::kLap, ns(last_), ns(now));
  seconds_[name] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

double StepTimer::seconds(const std::string& name) const {
  const auto found = seconds_.find(name);
  return found == seconds_.end() ? 0.0 : found->second;
}

Metrics StepTimer::metrics(const SampleScalars& samples, std::int64_t workers) const {
  const double step = std::max(1e-9, std::chrono::duration<double>(last_ - begin_).count());
  const auto tokens = static_cast<double>(samples.tokens());
  Metrics metrics{{"timing_s/step", step},
                  {"perf/total_num_tokens", tokens},
                  {"perf/time_per_step", step},
                  {"perf/throughput", tokens / step / static_cast<double>(workers)},
                  {"perf/samples_per_s", static_cast<double>(samples.scores.size()) / step}};
  for (const auto& [name, seconds] : seconds_) metrics["timing_s/" + name] = seconds;
  const auto per_token = [&](const char* name, double count) {
    if (seconds_.contains(name) && count > 0)
      metrics[std::string("timing_per_token_ms/") + name] = seconds(name) * 1000.0 / count;
  };
  per_token("gen", total(samples.response_tokens));
  for (const char* name : {"ref", "teacher", "values", "adv", "update_critic", "update_actor"})
    per_token(name, tokens);
  return metrics;
}

}  // namespace rl
