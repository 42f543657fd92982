// The best value of a metric so far: what early stopping and keeping the best checkpoint go by. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rl/config/config.h"
#include "rl/watch/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// The best value so far and how many measurements ago it was. A value; saved with checkpoints.
struct BestSoFar {
  std::optional<double> value;
  std::int64_t since = 0;  // measurements that were no better

  /// Whether `now` is better by more than `min_delta`; the first one is. A NaN never is.
  bool observe(double now, bool larger_is_better, double min_delta = 0.0);

  nlohmann::ordered_json to_json() const;
  /// What is not understood counts as nothing measured yet.
  static BestSoFar from_json(const nlohmann::ordered_json& json);
  /// Of what `state` has there, if anything.
  static BestSoFar from_json(const nlohmann::ordered_json& state, const char* key);
};

/// Whether a metric comes with validations only: val-core/..., val/loss.
bool is_of_validation(const std::string& metric);

struct EarlyStopOptions {
  std::string metric;             // empty: never
  bool larger_is_better = true;
  std::int64_t patience = 5;      // measurements without an improvement
  double min_delta = 0.0;         // what counts as one
  std::optional<double> target;   // good enough: stop at once

  /// kInvalidArgument: a value out of range, or a metric that will never be measured, by key.
  static runtime::Result<EarlyStopOptions> from_config(const Config& config);
};

struct SaveBestOptions {
  std::string metric;             // empty: no checkpoint is better than another
  bool larger_is_better = true;

  static runtime::Result<SaveBestOptions> from_config(const Config& config);
};

/// Both, as a run's options have them.
runtime::Status read_goals(const Config& config, SaveBestOptions& save_best, EarlyStopOptions& early_stop);

/// Why training is over after these metrics; nothing: it goes on. A step without the metric is no measurement.
std::optional<std::string> early_stop(const EarlyStopOptions& options, BestSoFar& best, const Metrics& metrics);

}  // namespace rl
