// Metrics for the person who watches: a line a step, and a bar.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "rl/metrics/metrics.h"

namespace rl {

struct ConsoleOptions {
  std::int64_t interval = 1;  // print every N steps; the first and the last always
  bool bar = false;           // draw a progress bar below the lines
  std::int64_t width = 100;   // of the bar's line, in columns

  /// With a bar where that is a terminal, as wide as $COLUMNS says.
  static ConsoleOptions of_stdout(std::int64_t interval);
};

/// One line a step, "step:3/10 - epoch:0 - actor/pg_loss:0.0123 - ...": the metrics that people
/// watch first, in a fixed order, and whatever begins with "val". The rest goes to the other sinks.
/// A phase stands before it: "sft step:3/10 - ...". With a bar, the line appears above it.
class ConsoleSink : public MetricSink {
 public:
  /// Writes to `out`, which is borrowed.
  ConsoleSink(std::FILE* out, const ConsoleOptions& options);
  ~ConsoleSink() override;

  runtime::Status write(const StepRecord& record) override;

  /// The line without its end; what write() prints.
  static std::string line(const StepRecord& record);

  /// "[#####.....]  50%  step 5/10  2.1 s/step  ETA 0:11" within `width` columns.
  static std::string bar(std::int64_t step, std::int64_t total, double seconds_per_step,
                         std::int64_t width);

 private:
  std::FILE* out_;
  ConsoleOptions options_;
  std::optional<std::int64_t> first_step_;  // of the present phase
  std::string phase_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rl
