// The key that a scraper shows.
#pragma once

#include <string>

namespace runtime {

/// What a scraper shows: follows from the cluster's token, which does not follow from it.
std::string metrics_key(const std::string& token);

}  // namespace runtime
