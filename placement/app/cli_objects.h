// `starling list objects`.
#pragma once

#include <string>

#include "placement/app/cli_filter.h"

namespace placement {

/// Returns the exit code.
int list_objects_command(const std::string& address, bool json, const Filters& filters);

}  // namespace placement
