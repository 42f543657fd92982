// Alarms: the detection, by metrics, of runs that go wrong in known ways. Pure: no clock, no log.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

enum class AlarmAction { kOff, kWarn, kStop };

/// "none", "stop"; anything else is "warn".
AlarmAction parse_alarm_action(const std::string& name);

/// Limits of metrics; a step beyond one is a bad step. A limit that no run reaches (an infinite
/// one, or for entropy a negative one) switches its alarm off.
struct AlarmOptions {
  AlarmAction action = AlarmAction::kWarn;
  std::int64_t steps = 5;          // bad ones in a row before it is told
  double ppo_kl_max = 0.5;         // actor/ppo_kl, nats a token: how far one step moves the policy
  double reference_kl_max = 5.0;   // actor/kl_loss and actor/reward_kl_penalty, nats a token: how
                                   // far it went from the reference
  double entropy_min = 0.001;      // actor/entropy, nats a token
  double equal_scores_max = 0.99;  // critic/score/equal_groups: prompts whose responses all score
                                   // the same, from which nothing is learned
  double truncated_max = 0.99;  // response_length/clip_ratio: responses that the length limit cut

  /// kInvalidArgument: a value out of range, by key.
  static runtime::Result<AlarmOptions> from_config(const Config& config);
};

/// Counts the bad steps in a row of each kind. A value; copyable.
class Alarms {
 public:
  explicit Alarms(const AlarmOptions& options) : options_(options) {}

  /// What there is to tell after this step: each alarm once per run of bad steps, with its number,
  /// its limit and what to do. A metric that is missing says nothing and leaves its count as it is.
  /// Adds `alarms/` and the limit's name, 1, for each that is told.
  std::vector<std::string> observe(Metrics& metrics);

  const AlarmOptions& options() const { return options_; }

 private:
  AlarmOptions options_;
  std::map<std::string, std::int64_t> bad_steps_;  // by metric
};

/// The share of groups of at least two samples whose scores are all the same; `group_sizes` adds up
/// to the scores. Negative where there is no such group.
double equal_score_groups(const std::vector<double>& scores,
                          const std::vector<std::int64_t>& group_sizes);

}  // namespace rl
