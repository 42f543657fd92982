// What this machine has.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/node/membership.h"

namespace runtime {

std::string machine_hostname();
/// CPUs that this process may run on: its affinity, cut to the cgroup's quota; at least 1.
int machine_cpus();
/// Memory of the machine, or the cgroup's limit where that is lower.
std::uint64_t machine_memory_bytes();
/// NVIDIA GPUs that the kernel's driver shows; 0 without a driver.
int machine_gpus();

/// CPU, memory and (if there are any) GPU, as a node offers them.
ResourceMap machine_resources();

}  // namespace runtime
