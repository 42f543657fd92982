// `starling why`: what a thing of the cluster waits for, and what became of it.
#pragma once

#include <string>

namespace placement {

/// `what` is the id of an actor, a placement group, a node or a job (its first digits are enough),
/// or a name. Returns the exit code.
int why_command(const std::string& address, const std::string& what);

}  // namespace placement
