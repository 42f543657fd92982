// A training command's messages about the files that it keeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "rl/checkpoint/early_stop.h"
#include "rl/checkpoint/resume.h"
#include "rl/checkpoint/save_times.h"
#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// In the log, before the first step: when and where weights are saved, and where metrics go. A
/// warning where nothing is kept of them.
void print_kept(const SaveTimes& save, const SaveBestOptions& best,
                const std::filesystem::path& folder, const MetricLogger& metrics);

/// In a dry run: which checkpoint the run would continue from, and which keys have changed since;
/// nothing where it would begin. `model`: where the model that `model_key` names is; one that is
/// not here, or is made for the run (the toy model), is not compared. Errors: the run would refuse
/// the checkpoint. Its files are not verified.
runtime::Status print_resume(std::ostream& out, const ResumeOptions& resume,
                             const std::filesystem::path& folder, const Config& config,
                             const std::string& model_key, const std::filesystem::path& model,
                             bool adapter);

/// "metrics:    FILE", a line each.
void print_metric_places(std::ostream& out, const MetricLogger& metrics);

/// "checkpoint: FOLDER", of the newest one, after `steps` steps, and how many of them are not in
/// it; or that there is none.
void print_checkpoint(std::ostream& out, const std::optional<std::filesystem::path>& latest,
                      std::int64_t steps, const SaveTimes& save);

}  // namespace rl
