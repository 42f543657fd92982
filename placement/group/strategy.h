// The node of each bundle of a placement group: a pure function of what the nodes have left.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "placement/resource/resources.h"
#include "placement/resource/room.h"
#include "runtime/control/membership.h"

namespace placement {

/// What a bundle takes, and of which nodes it may be.
struct BundleNeed {
  Resources amount;
  runtime::Labels labels = {};  // selectors
  bool operator==(const BundleNeed&) const = default;
  auto operator<=>(const BundleNeed&) const = default;
};

/// A node, as far as groups are concerned. Borrows both.
struct NodeOffer {
  const Room* room;
  const runtime::Labels* labels;
};

/// Chooses a node (an index into `nodes`) for each bundle such that all fit together, or nothing.
///   kStrictPack    all on one node: the fullest that takes them
///   kPack          on as few nodes as first-fit by falling size finds
///   kStrictSpread  all on different nodes, whenever that can be done (bipartite matching)
///   kSpread        evenly: each on the node with the fewest bundles that takes it
///
/// Cost: O(bundles x nodes), of which what is known of equal bundles is worked out once.
/// kStrictSpread costs O(bundles^2 x nodes) at worst.
std::optional<std::vector<std::size_t>> assign_bundles(runtime::GroupStrategy strategy,
                                                       std::span<const BundleNeed> bundles,
                                                       std::span<const NodeOffer> nodes);
/// The same assignment for bundles and nodes without labels.
std::optional<std::vector<std::size_t>> assign_bundles(runtime::GroupStrategy strategy,
                                                       std::span<const Resources> bundles,
                                                       std::span<const Resources> available);

}  // namespace placement
