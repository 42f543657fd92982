// The processes that a process started, and those that they did, in whatever groups and sessions.
#pragma once

#include <sys/types.h>

#include <string>

namespace runtime {

/// Stops the descendants of `root`, so that none starts others, and kills them; not `root` itself.
/// It finds them by the chain of parents. Where that is broken it finds them by `mark`, a line of
/// the environment that they began with ("NAME=value"). `root` must start nothing meanwhile: stop
/// it first. Gives up after a bounded number of rounds. Cost: files of all processes of the
/// machine, a few times.
void kill_descendants(pid_t root, const std::string& mark);

}  // namespace runtime
