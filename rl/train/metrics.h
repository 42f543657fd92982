// Numbers about a step and where they are shown: console, progress bar, JSON lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// Named numbers, in verl's names ("actor/pg_loss", "timing_s/gen"). A value that travels between actors.
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
  /// A failure says why the record was not kept; training goes on.
  virtual runtime::Status write(const StepRecord& record) = 0;
};

struct ConsoleOptions {
  std::int64_t interval = 1;  // print every so many steps; the first and the last always
  bool bar = false;           // draw a progress bar below the lines
  std::int64_t width = 100;   // of the bar's line, in columns
};

/// One line a step, "step:3/10 - epoch:0 - actor/pg_loss:0.0123 - ...": the metrics that people watch first, in a fixed order, and
/// whatever begins with "val"; the rest goes to the other sinks. A phase stands before it: "sft step:3/10 - ...". With a bar, the line
/// appears above it.
class ConsoleSink : public MetricSink {
 public:
  /// Writes to `out`, which is borrowed.
  ConsoleSink(std::FILE* out, const ConsoleOptions& options);
  ~ConsoleSink() override;

  runtime::Status write(const StepRecord& record) override;

  /// The line without its end; what write() prints.
  static std::string line(const StepRecord& record);

  /// "[#####.....]  50%  step 5/10  2.1 s/step  ETA 0:11" within `width` columns.
  static std::string bar(std::int64_t step, std::int64_t total, double seconds_per_step, std::int64_t width);

 private:
  std::FILE* out_;
  ConsoleOptions options_;
  std::optional<std::int64_t> first_step_;  // of the present phase
  std::string phase_;
  std::chrono::steady_clock::time_point begin_;
};

/// One JSON object a line: {"step":3,"total":10,"epoch":0,"data":{...}}, with "phase" if there is one; a number that is not finite becomes null.
/// Every line is flushed, so that a killed run has all of its steps.
class JsonLinesSink : public MetricSink {
 public:
  /// Opens `file` for appending, its folder made if need be. Lines of a step after `last_step` are dropped first: a resumed run
  /// replaces what an interrupted one had written past its checkpoint. A last line cut short by a kill goes, too.
  /// Errors: as errno says, with the path.
  static runtime::Result<std::unique_ptr<JsonLinesSink>> open(const std::filesystem::path& file, std::int64_t last_step);
  ~JsonLinesSink() override;

  runtime::Status write(const StepRecord& record) override;

 private:
  JsonLinesSink(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}

  std::FILE* file_;
  std::filesystem::path path_;
};

/// Several sinks as one. A sink that fails is reported once and left out from then on.
class MetricLogger {
 public:
  void add(std::unique_ptr<MetricSink> sink) { sinks_.push_back(std::move(sink)); }
  void write(const StepRecord& record);

 private:
  std::vector<std::unique_ptr<MetricSink>> sinks_;
};

}  // namespace rl
