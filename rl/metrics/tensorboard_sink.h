// Metrics as TensorBoard's event files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "rl/metrics/log_file.h"
#include "rl/metrics/metrics.h"

namespace rl {

/// Scalars in `events.out.tfevents.<time>.<host>.<process>`, a file for each start of a run:
/// records of TensorFlow's TFRecord form, each an `Event`. A metric is its own scalar name.
class TensorBoardSink : public MetricSink {
 public:
  /// Starts a file in `folder`, which is made if need be. What earlier files hold after `last_step`
  /// is superseded: TensorBoard drops it.
  static runtime::Result<std::unique_ptr<TensorBoardSink>> open(const std::filesystem::path& folder,
                                                                std::int64_t last_step);

  runtime::Status write(const StepRecord& record) override;
  std::string place() const override { return file_.path().parent_path().string(); }

 private:
  explicit TensorBoardSink(LogFile file) : file_(std::move(file)) {}

  LogFile file_;
};

}  // namespace rl
