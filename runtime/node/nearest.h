// What somebody may have meant.
#pragma once

#include <string>
#include <vector>

namespace runtime {

/// The candidates that are nearest to `wanted` by their beginnings (changed, missing and further letters count), the nearest first.
std::vector<std::string> nearest(const std::string& wanted, const std::vector<std::string>& candidates, std::size_t count = 3);

}  // namespace runtime
