// `starling stop`.
#pragma once

#include <string>

namespace placement {

/// Ends the cluster that `address` (or STARLING_ADDRESS, or the last session) names: all its nodes
/// on this machine. Where its head is here, all of the cluster ends. An address of a node without
/// the head ends that node only. While jobs run there it names them and ends nothing, unless
/// `force` says so. Exit code: 0 when everything is gone.
int stop_command(const std::string& address, bool force);

}  // namespace placement
