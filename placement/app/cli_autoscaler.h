// `starling autoscaler`.
#pragma once

#include <string>

namespace placement {

struct AutoscalerCommandOptions {
  std::string address;  // HOST:PORT of the head's node
  std::string config;   // file
  std::string left;     // file for words about what could not be removed when the cluster stopped;
                        // empty when nothing is left
};

/// `starling autoscaler run`: what the node next to the head starts; not for people. Returns the
/// exit code.
int autoscaler_run_command(const AutoscalerCommandOptions& options);
/// `starling autoscaler status`
int autoscaler_status_command(const std::string& address, bool json);
/// `starling autoscaler check FILE`: the configuration, and whether the provider's command can be
/// run.
int autoscaler_check_command(const std::string& file);

}  // namespace placement
