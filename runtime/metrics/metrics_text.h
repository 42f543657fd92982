// A node's metrics in the format that Prometheus reads. docs/guide/observe.md lists them.
#pragma once

#include <string>

#include "runtime/observe/metrics_source.h"

namespace runtime {

/// Bounded in size: labels are states, kinds, and at most ActivityTable::kClassesMax classes.
std::string metrics_text(const MetricsReport& report);

}  // namespace runtime
