#include "placement/group/strategy.h"

#include <algorithm>
#include <numeric>

namespace placement {

namespace {

using Assignment = std::optional<std::vector<std::size_t>>;

/// Bundle indices, the ones hardest to place first: those that the fewest nodes could take alone, then the larger share of
/// the largest node.
std::vector<std::size_t> hardest_first(std::span<const Resources> bundles, std::span<const Resources> available) {
  std::vector<std::size_t> takers(bundles.size());
  std::vector<double> share(bundles.size());
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    for (const Resources& node : available) {
      if (!node.covers(bundles[b])) continue;
      ++takers[b];
      Resources left = node;
      left -= bundles[b];
      share[b] = std::max(share[b], left.utilisation_of(node, bundles[b]));
    }
  }
  std::vector<std::size_t> order(bundles.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return takers[a] != takers[b] ? takers[a] < takers[b] : share[a] > share[b];
  });
  return order;
}

Assignment strict_pack(std::span<const Resources> bundles, std::span<const Resources> available) {
  Resources total;
  for (const Resources& bundle : bundles) total += bundle;
  std::optional<std::size_t> best;
  double best_utilisation = -1;
  for (std::size_t n = 0; n < available.size(); ++n) {
    if (!available[n].covers(total)) continue;
    Resources left = available[n];
    left -= total;
    // The tightest fit leaves the roomy nodes to later groups.
    double utilisation = left.utilisation_of(available[n], total);
    if (utilisation > best_utilisation) {
      best = n;
      best_utilisation = utilisation;
    }
  }
  if (!best) return std::nullopt;
  return std::vector<std::size_t>(bundles.size(), *best);
}

Assignment pack(std::span<const Resources> bundles, std::span<const Resources> available) {
  if (Assignment one = strict_pack(bundles, available)) return one;
  std::vector<Resources> left(available.begin(), available.end());
  std::vector<bool> used(available.size());
  std::vector<std::size_t> chosen(bundles.size());
  for (std::size_t b : hardest_first(bundles, available)) {
    std::optional<std::size_t> node;
    for (std::size_t n = 0; n < left.size(); ++n) {
      if (!left[n].covers(bundles[b])) continue;
      if (!node || (used[n] && !used[*node])) node = n;  // prefer a node that the group is on already
    }
    if (!node) return std::nullopt;
    left[*node] -= bundles[b];
    used[*node] = true;
    chosen[b] = *node;
  }
  return chosen;
}

Assignment spread(std::span<const Resources> bundles, std::span<const Resources> available) {
  std::vector<Resources> left(available.begin(), available.end());
  std::vector<std::size_t> load(available.size());
  std::vector<std::size_t> chosen(bundles.size());
  for (std::size_t b : hardest_first(bundles, available)) {
    std::optional<std::size_t> node;
    for (std::size_t n = 0; n < left.size(); ++n) {
      if (left[n].covers(bundles[b]) && (!node || load[n] < load[*node])) node = n;
    }
    if (!node) return std::nullopt;
    left[*node] -= bundles[b];
    ++load[*node];
    chosen[b] = *node;
  }
  return chosen;
}

/// Kuhn's augmenting paths: every bundle to a node of its own.
class Matching {
 public:
  Matching(std::span<const Resources> bundles, std::span<const Resources> available)
      : bundles_(bundles), available_(available), owner_(available.size()) {}

  Assignment run() {
    for (std::size_t b = 0; b < bundles_.size(); ++b) {
      std::vector<bool> seen(available_.size());
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
    for (std::size_t n = 0; n < available_.size(); ++n) {
      if (seen[n] || !available_[n].covers(bundles_[bundle])) continue;
      seen[n] = true;
      if (owner_[n] && !augment(*owner_[n], seen)) continue;
      owner_[n] = bundle;
      return true;
    }
    return false;
  }

  std::span<const Resources> bundles_;
  std::span<const Resources> available_;
  std::vector<std::optional<std::size_t>> owner_;  // of each node: its bundle
};

}  // namespace

std::optional<std::vector<std::size_t>> assign_bundles(runtime::GroupStrategy strategy, std::span<const Resources> bundles,
                                                       std::span<const Resources> available) {
  switch (strategy) {
    case runtime::GroupStrategy::kStrictPack: return strict_pack(bundles, available);
    case runtime::GroupStrategy::kPack: return pack(bundles, available);
    case runtime::GroupStrategy::kStrictSpread: return Matching(bundles, available).run();
    case runtime::GroupStrategy::kSpread: return spread(bundles, available);
  }
  return std::nullopt;
}

}  // namespace placement
