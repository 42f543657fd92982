// What this process and its machine use of memory, for metrics.
#pragma once

namespace rl {

/// The most that this process has had resident, in GiB.
double peak_memory_gb();

/// What all processes of this machine use, in GiB: all but what the kernel could give to a new one. 0 where /proc does not say.
double machine_memory_used_gb();

}  // namespace rl
