// The metrics of a training step, and the sinks that they are written to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Numbers by their names in verl ("actor/pg_loss", "timing_s/gen"). A value that actors send to
/// each other.
using Metrics = std::map<std::string, double>;

/// Adds `<name>/mean`, `<name>/max` and `<name>/min` of the values; nothing if there are none.
void add_distribution(Metrics& metrics, const std::string& name, const std::vector<double>& values);

/// What one training step reports.
struct StepRecord {
  std::int64_t step = 0;   // counted from 1
  std::int64_t total = 0;  // steps of the whole run
  std::int64_t epoch = 0;
  Metrics metrics;
  std::string phase = {};  // empty: RL; "sft": the warm start before it, with its own step count
};

/// A destination of records. Not thread-safe.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// A failure has the reason, and no part of the record is left behind: the same record may be
  /// written again later.
  virtual runtime::Status write(const StepRecord& record) = 0;
  /// The file or folder to look into; empty for a terminal.
  virtual std::string place() const { return ""; }
};

/// Several sinks as one. Records that a sink could not write (full disk) are kept and written
/// later, in order. The beginning and the end of such a failure are logged. Not thread-safe.
class MetricLogger {
 public:
  MetricLogger() = default;
  MetricLogger(MetricLogger&&) = default;
  MetricLogger& operator=(MetricLogger&&) = default;
  /// Tries once more to write the kept records, and logs how many are lost.
  ~MetricLogger();

  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back({std::move(sink)}); }
  void write(const StepRecord& record);
  /// Tries once more to write the kept records. Errors: why some of them still cannot be written,
  /// and how many there are.
  runtime::Status flush();
  std::vector<std::string> places() const;

 private:
  struct Sink {
    std::unique_ptr<MetricSink> place;
    std::deque<StepRecord> unwritten = {};  // oldest first, kUnwrittenMax at most

    runtime::Status flush();
  };
  static constexpr std::size_t kUnwrittenMax = 10'000;  // about 50 MB

  std::vector<Sink> sinks_;
};

}  // namespace rl
