// `starling submit`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace runtime {

struct SubmitOptions {
  std::string address;
  std::optional<std::string> working_dir;  // shipped; nothing: it runs in the present folder if the node is on this machine
  std::vector<std::string> env;            // KEY=VALUE
  bool detach = false;
  std::vector<std::string> command;
};

/// Runs a command on the cluster's node, with its output here. Returns the command's exit code, 128 + N after signal N, 130
/// after a Ctrl-C, 1 when it could not be run. Detached: prints the job's id, and returns 0.
int submit_command(const SubmitOptions& options);

}  // namespace runtime
