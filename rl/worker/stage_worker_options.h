// StageWorkerOptions: options of the workers of a supervised or preference stage.
#pragma once

#include <cstdint>
#include <optional>

#include "rl/config/config.h"
#include "rl/optim/learner.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

/// Sections that a stage's configuration has where RL's has them below a role.
inline constexpr const char* kStageModel = "model";

struct StageWorkerOptions {
  LearnerOptions learner;
  std::optional<AdapterOptions> adapter;  // nothing: all weights are trained
  bool recompute_layers = false;          // see PassOptions
  bool bf16 = false;                      // see PassOptions
  std::uint64_t seed = 0;

  /// From `model.*`, `optim.*`, `engine.dtype` and `trainer.seed`; `device` is the workers'.
  /// kInvalidArgument: a value out of range, by key.
  static runtime::Result<StageWorkerOptions> from_config(const Config& config,
                                                         const std::string& device);
};

}  // namespace rl
