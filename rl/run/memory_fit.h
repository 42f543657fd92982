// A check that the processes of a run fit the memory of the nodes that it would run on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rl/actor/slot_plan.h"
#include "rl/actor/worker_slots.h"
#include "rl/plan/memory_plan.h"
#include "runtime/core/result.h"

namespace rl {

/// kResourceExhausted: the peaks of what would run together are more than some node has. The
/// message has the figures of each process, their number, the sum, what each node has, and what
/// would fit. A cluster of too few nodes is not judged here.
runtime::Status check_memory_fits(std::span<const RoleMemory> roles, const SlotOptions& slots,
                                  std::span<const NodeRoom> nodes);

/// The memory of all processes of the roles, of which one writes the checkpoint.
std::int64_t memory_of_all(std::span<const RoleMemory> roles);

/// What is reserved of the nodes' memory: slot_memory() for the roles that share the slots,
/// ahead_memory() for those that generate a step ahead. Of the latter a node has
/// `separate_per_node` workers.
SlotMemory slot_memory(std::span<const RoleMemory> roles, const SlotOptions& slots);
SlotMemory ahead_memory(std::span<const RoleMemory> roles, const SlotOptions& slots);

/// At most what the largest nodes have, as many as the run needs. It is for what may take more than
/// there is, since the length of its rows is not known.
SlotMemory bounded_memory(const SlotMemory& memory, const SlotOptions& slots,
                          std::span<const NodeRoom> nodes);

/// kResourceExhausted: the run wants more nodes than there are. No nodes at all are not judged.
runtime::Status check_enough_nodes(const SlotOptions& slots, std::span<const NodeRoom> nodes);

/// Warns of a node that has more workers than CPUs, which is slow and no mistake. Also warns of
/// workers that ask for more CPUs than a node has (trainer.cpus_per_worker). They wait for another
/// node, unless none can come (see plan_slots()): then there is no warning. Nothing: it is neither.
std::optional<std::string> cpu_warning(const SlotOptions& slots, std::span<const NodeRoom> nodes);

}  // namespace rl
