// `starling train`: reinforcement learning from a YAML file and Hydra overrides, on the cluster at
// hand or on its own.
#pragma once

#include "runtime/runtime.h"

namespace rl {

/// argv[0] is the command's name. `runtime` must have the classes of register_training_actors() and
/// not be started yet: a configuration that is wrong starts no cluster. Exit codes: 0 done, 1
/// failed (said on stderr), 2 usage.
int train_command(runtime::Runtime& runtime, int argc, char** argv);

}  // namespace rl
