// `starling logs`.
#pragma once

#include <string>

namespace placement {

/// Prints a log: of the node (empty `what`), or of an actor, job or node by id (or the beginning of
/// one) or actor name. `follow` continues until interrupted. Exit code 1: no such thing, or its log
/// is gone.
int logs_command(const std::string& address, const std::string& what, bool follow);

}  // namespace placement
