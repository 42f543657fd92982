// `starling submit`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/app/cli_amounts.h"

namespace placement {

struct SubmitOptions {
  std::string address;
  std::optional<std::string> working_dir;  // shipped; nothing: it runs in the present folder if the
                                           // node is on this machine
  std::vector<std::string> env;            // KEY=VALUE
  bool detach = false;
  CliAmounts amounts;  // what the program itself takes; nothing: it runs on the node at `address`
  std::vector<std::string> labels;  // KEY=VALUE, selectors of the node
  std::string place_timeout;        // how long it may wait for a node; empty: as long as it takes
  std::vector<std::string> command;

  bool takes_something() const {
    return amounts.cpus || amounts.gpus || amounts.resources || !labels.empty() ||
           !place_timeout.empty();
  }
};

/// Runs a command on the cluster's node, with its output here. Returns the command's exit code, 128
/// + N after signal N, 130 after a Ctrl-C, 1 when it could not be run. Detached: prints the job's
/// id once it runs, and returns 0. One that waits for what it takes says so every time the reason
/// changes.
int submit_command(const SubmitOptions& options);

}  // namespace placement
