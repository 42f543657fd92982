// `starling metrics`.
#pragma once

#include <string>

namespace placement {

/// Prints a node's metrics, or (`key`) what a scraper has to show for them. Returns the exit code.
int metrics_command(const std::string& address, bool key);

}  // namespace placement
