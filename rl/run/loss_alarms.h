// LossAlarms: supervised and preference training that ruins its model, told by its losses. Pure: no
// clock, no log.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "rl/run/alarms.h"
#include "runtime/core/result.h"

namespace rl {

struct LossAlarmOptions {
  AlarmAction action = AlarmAction::kWarn;
  std::int64_t steps = 3;       // whose mean is looked at, of what training steps measure
  double loss_rise_max = 2.0;   // times what it was: a loss beyond it
  double loss_fall_min = 0.01;  // times what it was at first: a training loss below it
  /// The loss has a target at which it is 0 (IPO, hinge, SPPO), so that its fall is no collapse.
  bool loss_may_vanish = false;
  std::string rate = "optim.lr";  // the key to lower

  /// From `trainer.alarms.*`. kInvalidArgument: a value out of range, by key.
  static runtime::Result<LossAlarmOptions> from_config(const Config& config);
};

/// Looks at four things:
/// - train_loss_rise: the training loss of the last steps against that of the first, which the
///   model had before any update;
/// - train_loss_collapse: the same, fallen to nearly nothing, unless the loss may vanish;
/// - val_loss_rise: the held-out loss against its lowest so far, and where it is the first
///   measurement, against the first training loss;
/// - chosen_fall: how unlikely the chosen responses have become (DPO and its like lower them along
///   with the rejected ones), against the reference on the same rows; without a reference, against
///   the first step.
/// Counts only what rises by more than noise. A value; saved with checkpoints.
class LossAlarms {
 public:
  LossAlarms() = default;  // never
  explicit LossAlarms(LossAlarmOptions options) : options_(std::move(options)) {}

  /// What there is to tell after this step, with the numbers, the limit and what to do. Each
  /// process tells each alarm once until it is over. Adds `alarms/NAME`, 1, for each that is told.
  /// `phase` is what the training metrics begin with: "train", "sft".
  std::vector<std::string> observe(Metrics& metrics, const std::string& phase = "train");

  const LossAlarmOptions& options() const { return options_; }

  nlohmann::ordered_json to_json() const;
  /// From a run's state, which has to_json() under kStateKey; one without it starts again.
  void restore(const nlohmann::ordered_json& state);

  static constexpr const char* kStateKey = "loss_alarms";

 private:
  // Something measured in the last steps, and what each measurement is compared with.
  struct Series {
    std::deque<double> values;
    std::deque<double> references;

    void push(double value, double reference, std::int64_t kept);
    nlohmann::ordered_json to_json() const;
    static Series from_json(const nlohmann::ordered_json& json);
  };

  void watch_training(const std::string& metric, double loss, Metrics& metrics,
                      std::vector<std::string>& messages);
  void watch_held_out(double loss, Metrics& metrics, std::vector<std::string>& messages);
  void watch_chosen(const std::string& phase, std::int64_t steps, Metrics& metrics,
                    std::vector<std::string>& messages);
  bool has_risen(double value, double reference) const;
  void judge(const std::string& alarm, bool is_bad, bool is_over, const std::string& what,
             Metrics& metrics, std::vector<std::string>& messages);

  LossAlarmOptions options_{.action = AlarmAction::kOff};
  std::optional<double> first_loss_;
  std::optional<double> lowest_held_out_;
  std::optional<double> first_chosen_;  // where there is no reference
  Series losses_;
  std::map<std::string, Series> chosen_;  // by phase
  std::set<std::string> bad_;  // told in this process, and not over: a run that goes on tells again
};

}  // namespace rl
