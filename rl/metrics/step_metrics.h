// From the scalars of a step to its metrics. Pure functions; names as in verl.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rl/metrics/metrics.h"

namespace rl {

/// Per-sample scalars of a step, all of one size.
struct SampleScalars {
  std::vector<double> scores;   // what the reward said
  std::vector<double> rewards;  // scores less the KL penalty, if there is one
  std::vector<float> advantages;
  std::vector<std::int64_t> prompt_tokens;
  std::vector<std::int64_t> response_tokens;
  std::vector<std::int64_t> learned_tokens = {};  // those of them that the policy chose; empty: all
  std::vector<std::int64_t> turns = {};           // messages of each conversation; or empty
  std::vector<std::uint8_t> stopped;
  std::int64_t prompt_tokens_max = 0;  // the limit of prompts; 0: unknown

  std::int64_t tokens() const;  // prompts and responses
};

/// critic/score/..., critic/rewards/..., critic/advantages/... (the mean over tokens),
/// critic/returns/... (equal to them), response_length/... (with clip_ratio: the share of responses
/// that the length limit cut), num_turns/... where conversations have several,
/// response_length_non_aborted/..., response/aborted_ratio, prompt_length/... (clip_ratio: the
/// share of prompts as long as the limit).
Metrics sample_metrics(const SampleScalars& samples);

/// global_seqlen/...: how evenly a step's tokens, prompts and responses, lie on the workers. min,
/// max: as they were generated; balanced_min, balanced_max: as they are trained.
Metrics balance_metrics(const std::vector<std::int64_t>& generated_by_worker,
                        const std::vector<std::int64_t>& trained_by_worker);

/// Per sample, after how many steps the weights were that generated its first and its last token.
struct VersionSpans {
  std::vector<std::int64_t> oldest;
  std::vector<std::int64_t> newest;
};

/// training/off_policy/trajectory_spans/... (versions that generated one sample),
/// trajectory_staleness/... and trajectory_staleness_worst/... (steps between the newest or oldest
/// of them and the weights of now, which have learned from `steps`).
void add_staleness(Metrics& metrics, const VersionSpans& versions, std::int64_t steps);

/// Adds up the parts that data-parallel workers report; of perf/max_... the greatest.
Metrics sum_metrics(const std::vector<Metrics>& parts);

/// Where a step's time goes: laps with names.
class StepTimer {
 public:
  /// The time since the last lap (or the beginning) is `name`'s.
  void lap(const std::string& name);
  double seconds(const std::string& name) const;

  /// timing_s/<lap> and timing_s/step; timing_per_token_ms/gen (per response token) and of ref,
  /// values, adv, updates (per token); perf/total_num_tokens, perf/time_per_step, perf/throughput
  /// (tokens a second and worker), perf/samples_per_s.
  Metrics metrics(const SampleScalars& samples, std::int64_t workers) const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  std::map<std::string, double> seconds_;
};

}  // namespace rl
