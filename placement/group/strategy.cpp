#include "placement/group/strategy.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "placement/resource/label_selector.h"

namespace placement {

namespace {

using Assignment = std::optional<std::vector<std::size_t>>;
using Bundles = std::span<const BundleNeed>;
using Nodes = std::span<const NodeOffer>;

/// What the nodes would have left. Only those that something is taken from are copied.
class Remaining {
 public:
  explicit Remaining(Nodes nodes) : nodes_(nodes) {}

  bool takes(std::size_t node, const BundleNeed& bundle) const {
    return room(node).covers(bundle.amount) && meets(*nodes_[node].labels, bundle.labels);
  }
  void take(std::size_t node, const BundleNeed& bundle) {
    copies_.try_emplace(node, *nodes_[node].room).first->second.take(bundle.amount);
  }
  const Room& room(std::size_t node) const {
    auto copy = copies_.find(node);
    return copy == copies_.end() ? *nodes_[node].room : copy->second;
  }

 private:
  Nodes nodes_;
  std::map<std::size_t, Room> copies_;
};

/// Bundle indices, the ones hardest to place first: those that the fewest nodes could take alone,
/// then the larger share of the largest node.
std::vector<std::size_t> hardest_first(Bundles bundles, Nodes nodes) {
  struct Hardness {
    std::size_t takers = 0;
    double share = 0;
  };
  const Remaining idle(nodes);
  std::map<const BundleNeed*, Hardness,
           decltype([](const BundleNeed* a, const BundleNeed* b) { return *a < *b; })>
      known;
  std::vector<const Hardness*> of(bundles.size());
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    auto [entry, is_new] = known.try_emplace(&bundles[b]);
    of[b] = &entry->second;
    for (std::size_t n = 0; is_new && n < nodes.size(); ++n) {
      if (!idle.takes(n, bundles[b])) continue;
      ++entry->second.takers;
      const Resources& left = nodes[n].room->left();
      entry->second.share =
          std::max(entry->second.share, left.utilisation_with(left, bundles[b].amount));
    }
  }
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return of[a]->takers != of[b]->takers ? of[a]->takers < of[b]->takers
                                          : of[a]->share > of[b]->share;
  });
  return order;
}

/// Whether a node takes all of them. Whole GPUs before parts, which could break them up.
bool takes_all(const NodeOffer& node, Bundles bundles, const std::vector<std::size_t>& order) {
  Room left = *node.room;
  for (std::size_t b : order) {
    if (!left.covers(bundles[b].amount)) return false;
    left.take(bundles[b].amount);
  }
  return true;
}

// Of all that is wanted together.
double summed_shares(const runtime::ResourceMap& wanted, const Resources& left) {
  double sum = 0;
  for (const auto& [name, amount] : wanted)
    sum += amount * Resources::kUnitsPerOne / static_cast<double>(left.units(name));
  return sum;
}

Assignment strict_pack(Bundles bundles, Nodes nodes) {
  Resources total;
  for (const BundleNeed& bundle : bundles) total += bundle.amount;
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return bundles[a].amount.units("GPU") > bundles[b].amount.units("GPU");
  });
  const runtime::ResourceMap wanted = total.to_map();
  std::optional<std::size_t> best;
  std::pair<double, double> best_fit;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const Resources& left = nodes[n].room->left();
    if (!left.covers(total)) continue;
    // The tightest fit leaves the roomy nodes to later groups: of nodes whose CPUs are all taken
    // that with the least memory.
    const std::pair fit(left.utilisation_with(left, total), summed_shares(wanted, left));
    if ((best && fit <= best_fit) || !takes_all(nodes[n], bundles, order)) continue;
    if (!std::all_of(bundles.begin(), bundles.end(), [&](const BundleNeed& bundle) {
          return meets(*nodes[n].labels, bundle.labels);
        }))
      continue;
    best = n;
    best_fit = fit;
  }
  if (!best) return std::nullopt;
  return std::vector<std::size_t>(bundles.size(), *best);
}

Assignment pack(Bundles bundles, Nodes nodes) {
  if (Assignment one = strict_pack(bundles, nodes)) return one;
  Remaining left(nodes);
  std::vector<std::size_t> used;  // those that the group is on already come first
  std::vector<bool> is_used(nodes.size());
  std::vector<std::size_t> chosen(bundles.size());
  for (std::size_t b : hardest_first(bundles, nodes)) {
    std::optional<std::size_t> node;
    for (std::size_t n : used) {
      if (!node && left.takes(n, bundles[b])) node = n;
    }
    for (std::size_t n = 0; !node && n < nodes.size(); ++n) {
      if (!is_used[n] && left.takes(n, bundles[b])) node = n;
    }
    if (!node) return std::nullopt;
    left.take(*node, bundles[b]);
    if (!is_used[*node]) used.insert(std::upper_bound(used.begin(), used.end(), *node), *node);
    is_used[*node] = true;
    chosen[b] = *node;
  }
  return chosen;
}

Assignment spread(Bundles bundles, Nodes nodes) {
  Remaining left(nodes);
  std::vector<std::size_t> load(nodes.size());
  std::vector<std::size_t> chosen(bundles.size());
  for (std::size_t b : hardest_first(bundles, nodes)) {
    std::optional<std::size_t> node;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if ((!node || load[n] < load[*node]) && left.takes(n, bundles[b])) node = n;
    }
    if (!node) return std::nullopt;
    left.take(*node, bundles[b]);
    ++load[*node];
    chosen[b] = *node;
  }
  return chosen;
}

/// Kuhn's augmenting paths: every bundle to its own node.
class Matching {
 public:
  Matching(Bundles bundles, Nodes nodes) : bundles_(bundles), idle_(nodes), owner_(nodes.size()) {}

  Assignment run() {
    for (std::size_t b = 0; b < bundles_.size(); ++b) {
      std::vector<bool> seen(owner_.size());
      if (!augment(b, seen)) return std::nullopt;
    }
    std::vector<std::size_t> chosen(bundles_.size());
    for (std::size_t n = 0; n < owner_.size(); ++n) {
      if (owner_[n]) chosen[*owner_[n]] = n;
    }
    return chosen;
  }

 private:
  bool augment(std::size_t bundle, std::vector<bool>& seen) {
    // A free node before one whose bundle would have to move.
    for (std::size_t n = 0; n < owner_.size(); ++n) {
      if (seen[n] || owner_[n] || !idle_.takes(n, bundles_[bundle])) continue;
      owner_[n] = bundle;
      return true;
    }
    for (std::size_t n = 0; n < owner_.size(); ++n) {
      if (seen[n] || !owner_[n] || !idle_.takes(n, bundles_[bundle])) continue;
      seen[n] = true;
      if (!augment(*owner_[n], seen)) continue;
      owner_[n] = bundle;
      return true;
    }
    return false;
  }

  Bundles bundles_;
  const Remaining idle_;
  std::vector<std::optional<std::size_t>> owner_;  // of each node: its bundle
};

}  // namespace

Assignment assign_bundles(runtime::GroupStrategy strategy, Bundles bundles, Nodes nodes) {
  switch (strategy) {
    case runtime::GroupStrategy::kStrictPack: return strict_pack(bundles, nodes);
    case runtime::GroupStrategy::kPack: return pack(bundles, nodes);
    case runtime::GroupStrategy::kStrictSpread:
      return bundles.size() > nodes.size() ? std::nullopt : Matching(bundles, nodes).run();
    case runtime::GroupStrategy::kSpread: return spread(bundles, nodes);
  }
  return std::nullopt;
}

Assignment assign_bundles(runtime::GroupStrategy strategy, std::span<const Resources> bundles,
                          std::span<const Resources> available) {
  static const runtime::Labels kNone;
  std::vector<BundleNeed> needs;
  for (const Resources& bundle : bundles) needs.push_back({bundle});
  std::vector<Room> rooms;
  for (const Resources& node : available) rooms.emplace_back(node);
  std::vector<NodeOffer> nodes;
  for (const Room& room : rooms) nodes.push_back({&room, &kNone});
  return assign_bundles(strategy, needs, nodes);
}

}  // namespace placement
