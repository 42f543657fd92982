// `starling drain`.
#pragma once

#include <string>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace placement {

struct DrainOptions {
  std::string address;           // of the cluster
  std::string node;              // id, the first digits of one, HOST:PORT or host name
  std::string deadline = "30s";  // as parse_duration() reads it
  std::string reason = "on request";
  bool wait = false;  // until the node has left
};

/// Returns the exit code: 0 once the cluster has recorded it (with `wait`: once the node has left),
/// 1 with a message on stderr.
int drain_command(const DrainOptions& options);

/// The one node that `text` names. Errors: kNotFound, which offers the nearest; kInvalidArgument
/// (several).
runtime::Result<runtime::NodeInfo> find_node(const std::vector<runtime::NodeInfo>& nodes,
                                             const std::string& text);

}  // namespace placement
