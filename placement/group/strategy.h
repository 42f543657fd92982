// Which node each bundle of a placement group goes to: a pure function of what the nodes have left.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "placement/resource/resources.h"
#include "runtime/control/membership.h"

namespace placement {

/// Chooses a node (an index into `available`) for each bundle such that all fit together, or nothing.
///   kStrictPack    all on one node: the fullest that takes them
///   kPack          on as few nodes as first-fit by falling size finds
///   kStrictSpread  all on different nodes; finds an assignment whenever there is one (bipartite matching)
///   kSpread        evenly: each on the node with the fewest bundles that takes it
/// Cost: O(bundles x nodes); kStrictSpread O(bundles^2 x nodes).
std::optional<std::vector<std::size_t>> assign_bundles(runtime::GroupStrategy strategy, std::span<const Resources> bundles,
                                                       std::span<const Resources> available);

}  // namespace placement
