// `starling head`: the program that a node starts next to itself. Not for people.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/control/scheduler.h"

namespace placement {

struct HeadCommandOptions {
  std::string cluster;   // id
  std::string node;      // id
  std::string socket;    // path
  std::string journal;   // folder; empty: none
  bool durable = false;  // it outlives the head's node
  bool again = false;    // a head before this one has written to it, so that it has to be there
};

/// The cluster's token comes by STARLING_TOKEN_FILE. Returns the exit code:
/// HeadChild::kExitUnusable when it cannot start.
int head_command(const HeadCommandOptions& options,
                 const std::function<std::unique_ptr<runtime::Scheduler>()>& make_scheduler);

}  // namespace placement
