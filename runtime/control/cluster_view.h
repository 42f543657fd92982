// A cluster as seen by a program that has not joined it: which one it would be, and what it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace runtime {

/// Instead of an address: a cluster that the program starts for itself, whichever others run.
inline constexpr const char* kPrivateCluster = "private";
/// A label of its node: others do not join it.
inline constexpr const char* kPrivateLabel = "starling.io/private";

/// Whether `explicit_address`, or STARLING_ADDRESS where that is empty, says so.
bool wants_private_cluster(const std::string& explicit_address);

struct ClusterView {
  ClusterId cluster;
  std::string address;  // HOST:PORT of the node that a program would connect to; empty: none
  std::vector<NodeInfo> nodes;  // that are alive
  std::uint64_t since_ms =
      0;                    // when the oldest of its nodes on this machine began; 0: none is here
  bool is_private = false;  // it would be started by the program; `nodes` is this machine
};

/// What a program that is given `explicit_address` would join; where it would start its own
/// cluster, that. Errors: those of find_cluster() but for that none runs, and of asking it.
Result<ClusterView> view_cluster(const std::string& explicit_address);

}  // namespace runtime
