// The memory use of this process and its machine, for metrics.
#pragma once

#include "rl/metrics/metrics.h"
#include "runtime/core/result.h"

namespace rl {

/// The most that this process has had resident, in GiB.
double peak_memory_gb();

/// `metrics` with perf/max_memory_allocated_gb, which is that.
runtime::Result<Metrics> with_peak_memory(runtime::Result<Metrics> metrics);

/// What all processes of this machine use, in GiB: all but what the kernel could give to a new one.
/// 0 where /proc does not say.
double machine_memory_used_gb();

}  // namespace rl
