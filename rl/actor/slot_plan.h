// SlotPlan: the bundles that a run reserves, by what the nodes have. Pure arithmetic.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rl/actor/worker_slots.h"
#include "runtime/control/membership.h"
#include "runtime/core/result.h"

namespace rl {

/// What a node has, as it says itself: memory is the machine's, or the least limit of its cgroups,
/// or what `starling start --resources` declared.
struct NodeRoom {
  std::string name;         // "node 7f3a0011 at 10.0.0.2:7000"
  double memory_bytes = 0;  // 0: it does not say
  double cpus = 0;
  bool is_private = false;  // of a cluster that ends with its program: no other node will come
};

/// Of the nodes that workers can be on.
std::vector<NodeRoom> node_rooms(std::span<const runtime::NodeInfo> nodes);

/// What is reserved for a group of workers.
struct SlotPlan {
  double cpus = 0;  // of one slot
  runtime::GroupStrategy strategy = runtime::GroupStrategy::kPack;
  std::vector<runtime::ResourceMap> bundles = {};  // the leader's is the first
};

/// Where all nodes say what memory they have, and workers compute on CPUs, bundles take what
/// `options.memory` says. What another run holds is not looked at: a reservation waits for it.
/// kResourceExhausted: too few nodes, too few with the memory (and the CPUs) asked for, or a
/// private cluster without the CPUs. The message has the figures and the key to change.
runtime::Result<SlotPlan> plan_slots(const SlotOptions& options, std::span<const NodeRoom> nodes);

}  // namespace rl
