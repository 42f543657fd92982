// RlPlan: a run of reinforcement learning before anything of it is started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "rl/actor/worker_slots.h"
#include "rl/checkpoint/folder_lock.h"
#include "rl/config/config.h"
#include "rl/optim/lr_schedule.h"
#include "rl/run/profile_options.h"
#include "rl/run/rl/run_feeds.h"
#include "rl/run/rl/run_models.h"
#include "rl/run/rl/trainer_options.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"

namespace rl {

/// How long a run is, and its learning rates.
struct RunSchedule {
  std::int64_t total_steps = 0;
  LrScheduleOptions policy_rate = {};
  LrScheduleOptions critic_rate = {};
};

/// The configuration, read, and what it names, found.
struct RlPlan {
  Config config = {};
  TrainerOptions options = {};
  SlotOptions slots = {};  // of the policy
  PolicyOptions policy = {};
  std::map<std::string, std::int64_t> passes = {};  // by role, over a step's mini-batches
  ProfileOptions profile = {};
  FolderLock folder_lock = {};
  RunModels models = {};
  RunFeeds feeds = {};
  RunSchedule schedule = {};
  std::optional<std::filesystem::path> checkpoint = {};  // to continue from

  /// Everything that can be found wrong without workers is found here. Errors name the key, file or
  /// row, and the cure.
  static runtime::Result<RlPlan> make(const Config& config);

  std::int64_t workers() const { return slots.nodes * slots.per_node; }
};

}  // namespace rl
