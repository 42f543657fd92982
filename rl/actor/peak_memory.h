// The peaks of a worker's memory, as metrics of its steps.
#pragma once

#include "rl/metrics/metrics.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// `metrics` with perf/max_memory_allocated_gb, this process's peak on the host, and, where the
/// model is on a device that says so, perf/max_memory_reserved_gb, its peak there. Both in GiB.
runtime::Result<Metrics> with_peaks(runtime::Result<Metrics> metrics, const Transformer& model);

}  // namespace rl
