// `starling submit`.
#pragma once

#include <string>
#include <vector>

namespace runtime {

struct SubmitOptions {
  std::string address;
  std::string working_dir;       // empty: the current one
  std::vector<std::string> env;  // KEY=VALUE
  std::vector<std::string> command;
};

/// Runs a command on the cluster's node, with its output here. Returns the command's exit code, 128 + N after signal N, 130
/// after a Ctrl-C, 1 when it could not be run.
int submit_command(const SubmitOptions& options);

}  // namespace runtime
