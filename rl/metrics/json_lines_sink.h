// Metrics as lines of JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "rl/metrics/log_file.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// One JSON object a line: {"step":3,"total":10,"epoch":0,"data":{...}}, with "phase" if there is
/// one; a number that is not finite becomes null. Every line is flushed, so that a killed run has
/// all of its steps.
class JsonLinesSink : public MetricSink {
 public:
  /// Opens `file` for appending, its folder made if need be. Lines of a step after `last_step` are
  /// dropped first: a resumed run replaces what an interrupted one had written past its checkpoint.
  /// A last line cut short by a kill goes, too. Errors: as errno says, with the path.
  static runtime::Result<std::unique_ptr<JsonLinesSink>> open(const std::filesystem::path& file,
                                                              std::int64_t last_step);

  runtime::Status write(const StepRecord& record) override;
  std::string place() const override { return file_.path().string(); }

 private:
  explicit JsonLinesSink(LogFile file) : file_(std::move(file)) {}

  LogFile file_;
};

}  // namespace rl
