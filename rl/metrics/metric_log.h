// The places that a run's metrics go to: `trainer.logger`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/metrics/console_sink.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

struct MetricLogOptions {
  /// console needs no file; file (metrics.jsonl), csv (metrics.csv) and prometheus (metrics.prom)
  /// write in `folder`. tensorboard writes in `tensorboard_folder`, else where TENSORBOARD_DIR
  /// says, else in `folder/tensorboard`. wandb is an offline run in `folder`, or where WANDB_DIR
  /// says (none with WANDB_MODE=disabled). Others (swanlab, mlflow, ...) get metrics.jsonl in their
  /// stead, and one warning.
  std::vector<std::string> loggers;
  std::filesystem::path folder = {};
  std::int64_t last_step = 0;  // what was logged after it is dropped: the run continues from there
  std::string project = {};
  std::string experiment = {};
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  ConsoleOptions console = {};
  std::filesystem::path tensorboard_folder = {};  // `trainer.tensorboard_dir`
};

/// Opens all of them. Errors: as errno says, with the path, and with the key or variable that names
/// it.
runtime::Result<MetricLogger> open_metric_log(const MetricLogOptions& options);

}  // namespace rl
