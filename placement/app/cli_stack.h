// `starling stack ACTOR`.
#pragma once

#include <string>

namespace placement {

/// `what`: an actor's id (its first digits are enough) or name. Returns the exit code.
int stack_command(const std::string& address, const std::string& what, bool json);

}  // namespace placement
