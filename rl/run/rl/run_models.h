// The models that a run begins with.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "rl/checkpoint/model_identity.h"
#include "rl/config/config.h"
#include "rl/run/rl/roles.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

struct RunModels {
  std::filesystem::path policy;  // what training starts from, and what the reference stays at
  ModelIdentity identity;        // of it
  std::filesystem::path critic;
  /// The LoRA adapter that training begins with, empty for a new one; nothing: all weights are
  /// trained.
  std::optional<std::filesystem::path> adapter;
  std::vector<Teacher> teachers;  // not started
  Config reward_config;           // the run's, with reward models as paths

  /// Errors name the key. kInvalidArgument: models that do not fit each other.
  static runtime::Result<RunModels> find(const Config& config, const TrainerOptions& options,
                                         const PolicyOptions& policy);
};

}  // namespace rl
