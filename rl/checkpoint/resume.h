// The checkpoint that a run goes on from, and the check that it is the run's own.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// In a checkpoint's folder: what the controller needs to go on. Its "stage" is the command whose
/// run it is.
inline constexpr const char* kRunStateFile = "trainer.json";

enum class ResumeMode { kAuto, kDisable, kPath };

struct ResumeOptions {
  ResumeMode mode = ResumeMode::kAuto;
  std::filesystem::path path = {};  // of kPath

  /// trainer.resume_mode and trainer.resume_from_path. kInvalidArgument: a path is asked for and
  /// none is named.
  static runtime::Result<ResumeOptions> from_config(const Config& config);
};

/// The checkpoint to go on from: the newest whole one of `root`, or the one that was named. With
/// kDisable, and where there is none, nothing. `command` is the run's: "train", "dpo".
/// kInvalidArgument: the named one is damaged or none. Also, in every mode: `root` has checkpoints
/// of another command, which the run would remove or mix with its own.
runtime::Result<std::optional<std::filesystem::path>> checkpoint_to_resume(
    const ResumeOptions& options, const std::filesystem::path& root, std::string_view command);

/// kInvalidArgument: the state in `file` is another command's. One that does not say (of an earlier
/// version) passes.
runtime::Status check_state_owner(const nlohmann::ordered_json& state,
                                  const std::filesystem::path& file, std::string_view command);

}  // namespace rl
