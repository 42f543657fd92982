// What every trained actor does first: read the driver's configuration, join its group.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rl/actor/actors.h"
#include "rl/comm/communicator.h"
#include "rl/config/config.h"
#include "runtime/core/result.h"
#include "runtime/runtime.h"

namespace rl {

/// It also sets up the process of an actor on a device: it ends when the device is lost to it, and
/// on CUDA fp32 products have the precision that the configuration says. kInvalidArgument: no JSON
/// object.
runtime::Result<Config> parse_config(const WorkerSpec& spec);

/// Returns when all ranks of the group are there.
runtime::Result<std::unique_ptr<Communicator>> join_group(runtime::Runtime& runtime,
                                                          const WorkerSpec& spec);

/// Paths travel as text.
runtime::Result<std::vector<std::string>> as_text(
    const runtime::Result<std::vector<std::filesystem::path>>& files);

}  // namespace rl
