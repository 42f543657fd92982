// The resources and addresses of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/asio.h"
#include "runtime/core/resource_map.h"
#include "runtime/core/result.h"

namespace runtime {

std::string machine_hostname();
/// Whole CPUs that this process may use (cpu_limit()), at least 1.
int machine_cpus();
/// Memory of the machine, or the cgroup's limit where that is lower.
std::uint64_t machine_memory_bytes();

/// CPU, memory and (if there are any) GPU, as a node offers them.
ResourceMap machine_resources(bool detect_gpus = true);

/// The address of this machine from which `host` is reached; nothing is sent. Errors:
/// kInvalidArgument, kUnavailable (unknown host, no route).
Result<std::string> local_address_towards(const std::string& host);
/// Whether a socket of this machine can have the address.
bool is_address_of_this_machine(const asio::ip::address& address);
/// An address at which other machines probably reach this one; loopback if there is no other.
std::string outward_address();

}  // namespace runtime
