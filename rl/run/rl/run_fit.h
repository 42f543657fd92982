// A check that an RL run fits the nodes, and the levels of ZeRO with which it does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rl/config/config.h"
#include "rl/mesh/zero_level.h"
#include "rl/run/memory_fit.h"
#include "rl/run/rl/run_memory.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/run/zero_choice.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

/// The roles of a run whose models workers may keep once. They are the policy, a critic that is a
/// separate model, the reference with the teachers, and reward models.
std::vector<ZeroRole> zero_roles(const Config& config, const TrainerOptions& trainer,
                                 const SlotOptions& slots);

struct RunFit {
  ZeroChoice zero = {};
  ZeroLevel policy_level = ZeroLevel::kNone;
  RunMemory memory = {};  // at these levels
  runtime::Status fits =
      {};  // see check_memory_fits(); where nothing does, levels are as they were
};

/// A line each for people: how workers share passes and weights, and keys of strategies that are
/// not chosen. Of a configuration whose levels of ZeRO are settled.
std::vector<std::string> mesh_lines(const Config& config, const TrainerOptions& trainer,
                                    const SlotOptions& slots);

/// kInvalidArgument names the key of a role whose groups or teams do not divide the workers,
/// whatever its model is.
runtime::Status check_groups(const Config& config, const TrainerOptions& trainer,
                             const SlotOptions& slots);

/// Chooses the levels that are auto; see choose_zero_levels(). Errors: those of run_memory().
runtime::Result<RunFit> fit_run(const Config& config, const TrainerOptions& trainer,
                                const PolicyOptions& policy, const ModelConfig& policy_model,
                                const RunLengths& lengths, const SlotOptions& slots,
                                std::span<const NodeRoom> nodes);

}  // namespace rl
