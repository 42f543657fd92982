// A node's child process in the simulation: another simulated process, which runs the worker's
// main.
#pragma once

#include <memory>

#include "runtime/process/child_process.h"

namespace sim {

class World;

runtime::Result<std::unique_ptr<runtime::ChildProcess>> start_child(
    World& world, runtime::EventLoop& loop, const runtime::ProcessSpec& spec,
    runtime::ProcessHandlers handlers);

}  // namespace sim
