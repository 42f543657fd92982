// The nodes to add so that all waiting work has a place. It is a pure function of the demand, what
// there is and what may be added.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "placement/autoscaler/config.h"
#include "runtime/control/demand.h"

namespace placement {

/// A node that is there or on its way.
struct PoolNode {
  Resources available;
  runtime::Labels labels;
  bool operator==(const PoolNode&) const = default;
};

/// A node type, and how many more of it there may be now.
struct TypeOffer {
  NodeType
      type;  // with what its nodes really have, should that be less than what they were to have
  std::size_t room = 0;  // under the type's max_nodes
  // Nodes that it has already, for the mix.
  std::size_t spot = 0;
  std::size_t on_demand = 0;
  // Empty: it may be added. Else why not, for the time being.
  std::string spot_closed;
  std::string on_demand_closed;
  bool stands_in = false;  // spot nodes are short: nodes on demand instead

  /// What the next node of this type is to be, for something that is to have this label or (none)
  /// any.
  Capacity next_capacity() const;
};

struct PackInput {
  std::vector<PoolNode> pool;
  std::vector<TypeOffer> offers;  // in the order of preference
  std::size_t room = 0;           // nodes that may be added in all
  std::size_t nodes_max = 0;      // for the explanation
};

struct NewNode {
  std::size_t offer = 0;
  Capacity capacity = Capacity::kOnDemand;
  std::string reason;  // what it is for
  bool operator==(const NewNode&) const = default;
};

/// What waits, and whether it is provided for.
struct DemandReport {
  std::string what;  // "3 actors with CPU 2 (actor Counter 7f3a0011)"
  std::size_t count = 0;
  std::size_t unmet = 0;  // of them have no place even with the nodes to be added
  std::string reason;     // why
  bool operator==(const DemandReport&) const = default;
};

struct PackResult {
  std::vector<NewNode> add;
  std::vector<bool> used;  // of the pool: something is to go there
  std::vector<DemandReport> demand;
};

/// Groups first, as the scheduler does it, and each as a whole or not at all: half of a gang is no
/// use. What is put on nodes that are there needs no new one. The rest goes to the type that is
/// filled best, without resources that no shape asks for. Cost: O(shapes x nodes x types), and for
/// each group O(bundles^2 x nodes).
PackResult pack(const runtime::Demand& demand, PackInput input);

}  // namespace placement
