// RunJournal: the records and alarms of a run while it trains.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rl/metrics/metrics.h"
#include "rl/run/alarms.h"
#include "runtime/core/result.h"

namespace rl {

/// Records and alarms, and whether they end the training. One thread at a time.
class RunJournal {
 public:
  void open(MetricLogger logger) { logger_ = std::move(logger); }
  void on_step(std::function<void(const StepRecord&)> callback) { on_step_ = std::move(callback); }

  /// Writes a record to all places, and calls back.
  void record(const StepRecord& record);

  /// Reports an alarm, and ends the training if it is to.
  void alarm(const std::string& text, AlarmAction action);

  /// No step is to follow.
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  /// Why an alarm ended the training; ok: none did. Each once.
  runtime::Status take_alarm() { return std::exchange(alarmed_, {}); }
  bool is_alarmed() const { return !alarmed_.ok(); }

  const std::vector<std::string>& alarms() const { return alarms_; }
  const MetricLogger& logger() const { return logger_; }
  runtime::Status flush() { return logger_.flush(); }

 private:
  MetricLogger logger_;
  std::function<void(const StepRecord&)> on_step_;
  std::vector<std::string> alarms_;
  runtime::Status alarmed_;
  bool stopping_ = false;
};

}  // namespace rl
