// ExecutionOptions: the part of ActorOptions that says how an actor's process runs its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace runtime {

/// Calls that an actor may run at once, all groups together.
inline constexpr std::uint32_t kConcurrencyMax = 1000;
inline constexpr std::size_t kConcurrencyGroupsMax = 64;

/// By name: how many calls of the group's methods run at once.
using ConcurrencyGroups = std::map<std::string, std::uint32_t>;

struct ExecutionOptions {
  std::uint32_t max_concurrency = 1;  // of methods in no group
  ConcurrencyGroups concurrency_groups{};
  std::vector<std::uint32_t> cpu_affinity{};  // cores; empty: any

  /// kInvalidArgument: a group without calls or without a name, or over the limits.
  Status check() const;
  bool operator==(const ExecutionOptions&) const = default;
};

/// Pins all threads of this process, and those that they start. Errors: kInvalidArgument (the
/// machine has no such core, or this process may not use it).
Status pin_process(const std::vector<std::uint32_t>& cores);

}  // namespace runtime
