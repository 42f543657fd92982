// Amounts of resources, and labels, by name.
#pragma once

#include <map>
#include <string>

namespace runtime {

/// Amounts by resource name: "CPU" (cores), "GPU" (devices), "memory" (bytes) and any custom name.
/// Fractions are allowed down to 1/10000. A name that is absent means none of it.
using ResourceMap = std::map<std::string, double>;
using Labels = std::map<std::string, std::string>;

}  // namespace runtime
