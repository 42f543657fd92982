// Numbers about a step, and the places that they go to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Named numbers, in verl's names ("actor/pg_loss", "timing_s/gen"). A value that travels between
/// actors.
using Metrics = std::map<std::string, double>;

/// Mean, largest and smallest as `<name>/mean`, `/max`, `/min`. Nothing is added for no values.
void add_distribution(Metrics& metrics, const std::string& name, const std::vector<double>& values);

/// What one training step reports.
struct StepRecord {
  std::int64_t step = 0;   // counted from 1
  std::int64_t total = 0;  // steps of the whole run
  std::int64_t epoch = 0;
  Metrics metrics;
  std::string phase = {};  // empty: RL; "sft": the warm start before it, with steps of its own
};

/// A place that records go to. Not thread-safe.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// A failure says why the record was not kept, and leaves nothing of it behind: the same record
  /// may be written again later.
  virtual runtime::Status write(const StepRecord& record) = 0;
  /// The file or folder to look into; empty for a terminal.
  virtual std::string place() const { return ""; }
};

/// Several sinks as one. What a sink could not write (its disk is full) is kept and written with a
/// later record, in order; that is told when it begins and ends. Not thread-safe.
class MetricLogger {
 public:
  MetricLogger() = default;
  MetricLogger(MetricLogger&&) = default;
  MetricLogger& operator=(MetricLogger&&) = default;
  /// Tries once more, and tells of what is lost.
  ~MetricLogger();

  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back({std::move(sink)}); }
  void write(const StepRecord& record);
  /// Tries once more to write what is kept. Errors: why some of it still cannot be, and how many
  /// records wait.
  runtime::Status flush();
  std::vector<std::string> places() const;

 private:
  struct Sink {
    std::unique_ptr<MetricSink> place;
    std::deque<StepRecord> unwritten = {};  // oldest first, kUnwrittenMax at most

    runtime::Status flush();
  };
  static constexpr std::size_t kUnwrittenMax = 10'000;  // some 50 MB

  std::vector<Sink> sinks_;
};

}  // namespace rl
