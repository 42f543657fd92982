// What this machine has.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace runtime {

std::string machine_hostname();
/// CPUs that this process may run on: its affinity, cut to the cgroup's quota; at least 1.
int machine_cpus();
/// Memory of the machine, or the cgroup's limit where that is lower.
std::uint64_t machine_memory_bytes();

/// CPU, memory and (if there are any) GPU, as a node offers them.
ResourceMap machine_resources(bool detect_gpus = true);

/// The address of this machine from which `host` is reached; nothing is sent. Errors:
/// kInvalidArgument, kUnavailable (unknown host, no route).
Result<std::string> local_address_towards(const std::string& host);
/// An address at which other machines probably reach this one; loopback if there is no other.
std::string outward_address();

}  // namespace runtime
