// What a training command says of what it leaves behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>

#include "rl/train/early_stop.h"
#include "rl/train/save_times.h"
#include "rl/watch/metrics.h"

namespace rl {

/// In the log, before the first step: when and where weights are saved, and where metrics go. A
/// warning where nothing is kept of them.
void tell_kept(const SaveTimes& save, const SaveBestOptions& best,
               const std::filesystem::path& folder, const MetricLogger& metrics);

/// "metrics:    FILE", a line each.
void print_metric_places(std::ostream& out, const MetricLogger& metrics);

/// "checkpoint: FOLDER", of the newest one, after `steps` steps; and how many of them are not in
/// it.
void print_checkpoint(std::ostream& out, const std::optional<std::filesystem::path>& latest,
                      std::int64_t steps, const SaveTimes& save);

}  // namespace rl
