#include "rl/train/step_metrics.h"

#include <algorithm>
#include <numeric>

namespace rl {
namespace {

template <class T>
std::vector<double> as_doubles(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

double total(const std::vector<std::int64_t>& values) { return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0})); }

}  // namespace

std::int64_t SampleScalars::tokens() const { return static_cast<std::int64_t>(total(prompt_tokens) + total(response_tokens)); }

Metrics sample_metrics(const SampleScalars& samples) {
  Metrics metrics;
  add_distribution(metrics, "critic/score", samples.scores);
  add_distribution(metrics, "critic/rewards", samples.rewards);
  add_distribution(metrics, "critic/advantages", as_doubles(samples.advantages));
  add_distribution(metrics, "response_length", as_doubles(samples.response_tokens));
  add_distribution(metrics, "prompt_length", as_doubles(samples.prompt_tokens));
  if (!samples.stopped.empty()) {
    const auto cut = std::count(samples.stopped.begin(), samples.stopped.end(), std::uint8_t{0});
    metrics["response_length/clip_ratio"] = static_cast<double>(cut) / static_cast<double>(samples.stopped.size());
  }
  return metrics;
}

Metrics sum_metrics(const std::vector<Metrics>& parts) {
  Metrics sum;
  for (const Metrics& part : parts) {
    for (const auto& [name, value] : part) sum[name] += value;
  }
  return sum;
}

void StepTimer::lap(const std::string& name) {
  const Clock::time_point now = Clock::now();
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
    if (seconds_.contains(name) && count > 0) metrics[std::string("timing_per_token_ms/") + name] = seconds(name) * 1000.0 / count;
  };
  per_token("gen", total(samples.response_tokens));
  per_token("update_actor", tokens);
  return metrics;
}

}  // namespace rl
