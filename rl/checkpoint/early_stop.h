// The best value of a metric so far: what early stopping and keeping the best checkpoint go by.
// Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// A metric, and which of its values are better.
struct Goal {
  std::string metric;  // empty: none
  bool larger_is_better = true;

  bool operator==(const Goal&) const = default;
};

/// The best value of a goal's metric so far and how many measurements ago it was. A value; saved
/// with checkpoints.
struct BestSoFar {
  std::optional<double> value;
  std::int64_t since = 0;      // measurements that were no better
  std::optional<double> last;  // measurement

  /// Whether `now` is better by more than `min_delta`; the first one is. A NaN never is.
  bool observe(double now, bool larger_is_better, double min_delta = 0.0);

  nlohmann::ordered_json to_json(const Goal& goal) const;
  /// Of what `state` has there. Nothing measured yet: where there is nothing, what is not
  /// understood, and another goal's.
  static BestSoFar from_json(const nlohmann::ordered_json& state, const char* key,
                             const Goal& goal);
};

/// Whether a metric comes with validations only: val-core/..., val/loss.
bool is_of_validation(const std::string& metric);

struct EarlyStopOptions {
  Goal goal;                     // without a metric: never
  std::int64_t patience = 5;     // measurements without an improvement
  double min_delta = 0.0;        // what counts as one
  std::optional<double> target;  // good enough: stop at once

  /// kInvalidArgument: a value out of range, or a metric that will never be measured, by key.
  static runtime::Result<EarlyStopOptions> from_config(const Config& config);
};

struct SaveBestOptions {
  Goal goal;  // without a metric no checkpoint is better than another

  static runtime::Result<SaveBestOptions> from_config(const Config& config);
};

/// Both, as a run's options have them.
runtime::Status read_goals(const Config& config, SaveBestOptions& save_best,
                           EarlyStopOptions& early_stop);

/// Whether a training is over. A value; what it has seen is saved with checkpoints.
class EarlyStop {
 public:
  EarlyStop() = default;  // never
  explicit EarlyStop(EarlyStopOptions options) : options_(std::move(options)) {}

  /// A step without the metric is no measurement, and returns nothing; else reason_to_stop().
  std::optional<std::string> observe(const Metrics& metrics);

  /// Why training is over with what was measured last; nothing: it goes on. So also where a run
  /// goes on from its last checkpoint: with other options it may have to.
  std::optional<std::string> reason_to_stop() const;

  nlohmann::ordered_json to_json() const { return best_.to_json(options_.goal); }
  /// From a run's state, which has to_json() under kStateKey.
  void restore(const nlohmann::ordered_json& state) {
    best_ = BestSoFar::from_json(state, kStateKey, options_.goal);
  }

  static constexpr const char* kStateKey = "early_stop";

 private:
  EarlyStopOptions options_;
  BestSoFar best_;
  bool missed_ = false;  // told that the metric is not there
};

}  // namespace rl
