// The first steps of every trained actor: read the driver's configuration, join its group.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rl/actor/actor_values.h"
#include "rl/comm/training_ranks.h"
#include "rl/config/config.h"
#include "rl/mesh/pass_sharing.h"
#include "rl/mesh/zero_level.h"
#include "rl/worker/frozen_sharding.h"
#include "rl/worker/policy_options.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// Also sets up the process of an actor on a device. The process ends when it loses the device. On
/// CUDA, fp32 products have the configured precision. kInvalidArgument: no JSON object.
runtime::Result<Config> parse_config(const WorkerSpec& spec);

/// Whether the group can share passes of the spec's model, as the driver has found. Errors: those
/// of check_pass_sharing(), which name the role's key; the model cannot be read.
runtime::Status check_team(const Config& config, const std::string& role, const WorkerSpec& spec);

/// connect_ranks() of the spec's group, which is found through the cluster. Errors: its own; those
/// of node_host().
runtime::Result<TrainingRanks> join_group(runtime::Runtime& runtime, const WorkerSpec& spec,
                                          const PassSharing& sharing, ZeroLevel zero);

/// The same of workers that keep a frozen model's weights once together; null where each has them
/// whole, or is alone.
runtime::Result<std::unique_ptr<Communicator>> join_frozen(runtime::Runtime& runtime,
                                                           const WorkerSpec& spec,
                                                           const FrozenSharding& sharding);

/// What is trained in place of the weights: the adapter that the run goes on with, if any.
void place_adapter(const WorkerSpec& spec, std::optional<AdapterOptions>& adapter);

/// Paths travel as text.
runtime::Result<std::vector<std::string>> as_text(
    const runtime::Result<std::vector<std::filesystem::path>>& files);

}  // namespace rl
