// The classes of actors that training runs on.
#pragma once

#include "runtime/runtime.h"

namespace rl {

/// Makes the four classes known; in main, before Runtime::run().
void register_training_actors(runtime::Runtime& runtime);

/// The process's Runtime, which register_training_actors() was given; a bug before that.
runtime::Runtime& training_runtime();

}  // namespace rl
