// The places that a run writes metrics and samples to.
#pragma once

#include <cstdint>
#include <vector>

#include "rl/checkpoint/folder_lock.h"
#include "rl/config/config.h"
#include "rl/metrics/metrics.h"
#include "rl/run/rl/trainer_options.h"
#include "runtime/core/result.h"

namespace rl {

struct RunLogs {
  MetricLogger logger;
  std::vector<FolderLock> sample_locks;  // of folders that samples go to

  /// Writes the configuration to the run's folder, too. What cannot be written is found here,
  /// before the first step. `steps_done`: records of later steps go.
  static runtime::Result<RunLogs> open(const Config& config, const TrainerOptions& options,
                                       std::int64_t steps_done, bool validates);
};

}  // namespace rl
