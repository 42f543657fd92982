// `starling list objects`: what keeps memory in the nodes' stores.
#pragma once

#include <string>

namespace runtime {

/// Returns the exit code.
int list_objects_command(const std::string& address, bool json);

}  // namespace runtime
