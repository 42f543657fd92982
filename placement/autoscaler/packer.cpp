#include "placement/autoscaler/packer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "placement/group/strategy.h"
#include "placement/resource/label_selector.h"
#include "placement/resource/plural.h"

namespace placement {

namespace {

// This many groups are looked at in one round; those behind them wait for the next.
constexpr std::size_t kGroupsMax = 1000;

// What selectors want of a node's labels is a resource. A node that meets them has plenty of it,
// and each user takes the smallest share. So the code that assigns resources keeps to labels too.
constexpr double kPlenty = 1e6;
constexpr double kShare = 1.0 / Resources::kUnitsPerOne;

/// Something that needs one node, or a bundle.
struct Piece {
  Resources amount;  // without the labels
  runtime::Labels labels;
  Resources all;  // with them
};

/// The resource that stands for these.
Resources label_resource(const runtime::Labels& wanted, double amount) {
  auto resource = Resources::from_map({{"\nlabels " + to_string(wanted), amount}});
  return resource.ok() ? *resource : Resources();
}

runtime::Result<Piece> make_piece(const runtime::ResourceMap& resources,
                                  const runtime::Labels& labels) {
  auto amount = Resources::from_map(resources);
  if (!amount.ok()) return amount.status();
  if (runtime::Status status = check_selectors(labels); !status.ok()) return status;
  Piece piece{*amount, labels, *amount};
  if (!labels.empty()) piece.all += label_resource(labels, kShare);
  return piece;
}

std::string describe(const Piece& piece) {
  std::string text = piece.amount.to_string();
  if (!piece.labels.empty()) text += " on " + to_string(piece.labels);
  return text;
}

class Packer {
 public:
  Packer(PackInput input, const runtime::Demand& demand)
      : input_(std::move(input)), there_(input_.pool.size()) {
    for (const auto* shapes : {&demand.actors, &demand.jobs}) {
      for (const runtime::PlaceShape& shape : *shapes) want(shape.labels);
    }
    for (const runtime::GroupShape& shape : demand.groups) {
      for (const runtime::Labels& labels : shape.spec.bundle_labels) want(labels);
    }
    for (const PoolNode& node : input_.pool)
      left_.push_back(with_labels(node.available, node.labels));
    result_.used.resize(there_);
  }

  void place_groups(const std::vector<runtime::GroupShape>& groups) {
    std::size_t looked_at = 0;
    for (const runtime::GroupShape& shape : groups) {
      const std::string name =
          shape.spec.name.empty() ? shape.spec.group.short_hex() : "'" + shape.spec.name + "'";
      DemandReport report;
      report.count = shape.count;
      report.what = plural(shape.count, "placement group") + " of " +
                    plural(shape.spec.bundles.size(), "bundle") + ", " +
                    std::string(to_string(shape.spec.strategy)) + " (" + name + ")";
      std::size_t placed = 0;
      while (placed < shape.count && looked_at++ < kGroupsMax) {
        report.reason = place_group(shape.spec, report.what);
        if (!report.reason.empty()) break;  // nor do those that are like it fit
        ++placed;
      }
      report.unmet = shape.count - placed;
      if (report.unmet > 0 && report.reason.empty())
        report.reason = "the groups before it come first";
      result_.demand.push_back(std::move(report));
    }
  }

  void place_all(const std::vector<runtime::PlaceShape>& shapes, const char* what) {
    struct Entry {
      Piece piece;
      std::size_t report;
      std::size_t takers;
      double share;
    };
    std::vector<Entry> entries;
    for (const runtime::PlaceShape& shape : shapes) {
      DemandReport report;
      report.count = shape.count;
      auto piece = make_piece(shape.resources, shape.labels);
      if (piece.ok()) {
        report.what =
            plural(shape.count, what) + " with " + describe(*piece) + " (" + shape.example + ")";
        entries.push_back({*piece, result_.demand.size(), takers(*piece), share(*piece)});
      } else {
        report.what = plural(shape.count, what) + " (" + shape.example + ")";
        report.unmet = shape.count;
        report.reason = piece.status().message();
      }
      result_.demand.push_back(std::move(report));
    }
    // The ones that are hardest to place first.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.takers != b.takers ? a.takers < b.takers : a.share > b.share;
    });
    for (const Entry& entry : entries) {
      DemandReport& report = result_.demand[entry.report];
      report.unmet = report.count - place_pieces(entry.piece, report.count, report.what);
      if (report.unmet > 0) report.reason = why_not(entry.piece);
    }
  }

  PackResult take() { return std::move(result_); }

 private:
  void want(const runtime::Labels& labels) {
    if (!labels.empty() && check_selectors(labels).ok()) wanted_.insert(labels);
  }

  /// With the resources that stand for those of the wanted labels which it meets.
  Resources with_labels(const Resources& resources, const runtime::Labels& labels) const {
    Resources all = resources;
    for (const runtime::Labels& wanted : wanted_) {
      if (meets(labels, wanted)) all += label_resource(wanted, kPlenty);
    }
    return all;
  }

  /// How many types could hold it, and the share of the one that it fills best.
  std::size_t takers(const Piece& piece) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < input_.offers.size(); ++i)
      count += fresh(i, capacity_for(i, piece)).covers(piece.all);
    return count;
  }
  double share(const Piece& piece) const {
    double best = 0;
    for (const TypeOffer& offer : input_.offers) {
      if (!offer.type.resources.covers(piece.amount)) continue;
      Resources left = offer.type.resources;
      left -= piece.amount;
      best = std::max(best, left.utilisation_of(offer.type.resources, piece.amount));
    }
    return best;
  }

  /// What the node for this has to be: what it asks for by label, else what the mix says.
  Capacity capacity_for(std::size_t offer, const Piece& piece) const {
    const Capacity next = input_.offers[offer].next_capacity();
    auto wanted = piece.labels.find(std::string(kCapacityLabel));
    if (wanted == piece.labels.end()) return next;
    const Capacity other = next == Capacity::kSpot ? Capacity::kOnDemand : Capacity::kSpot;
    const auto fits = [&](Capacity capacity) {
      return meets({{wanted->first, std::string(to_string(capacity))}}, {*wanted});
    };
    return !fits(next) && fits(other) ? other : next;
  }

  /// An empty node of that type.
  Resources fresh(std::size_t offer, Capacity capacity) const {
    return with_labels(input_.offers[offer].type.resources, labels_of(offer, capacity));
  }
  runtime::Labels labels_of(std::size_t offer, Capacity capacity) const {
    runtime::Labels labels = input_.offers[offer].type.labels_of("", capacity);
    labels.erase(std::string(kAutoscalerIdLabel));
    return labels;
  }

  /// Empty: one of that type can be added now.
  std::string closed(std::size_t offer, Capacity capacity) const {
    const TypeOffer& from = input_.offers[offer];
    const bool never_spot = capacity == Capacity::kSpot && from.type.spot.share == 0;
    if (never_spot) return "node type '" + from.type.name + "' has no spot nodes";
    if (from.room == 0)
      return "node type '" + from.type.name + "' has its max_nodes, " +
             std::to_string(from.type.max_nodes);
    if (input_.room == 0) return "max_nodes, " + std::to_string(input_.nodes_max) + ", is reached";
    return capacity == Capacity::kSpot ? from.spot_closed : from.on_demand_closed;
  }

  /// The type for `count` of these, if one may be added now: without resources that they do not ask
  /// for, then filled best by them.
  std::optional<std::size_t> choose(const Piece& piece, std::size_t count) const {
    std::optional<std::size_t> best;
    std::size_t best_unneeded = 0;
    double best_filled = 0;
    for (std::size_t i = 0; i < input_.offers.size(); ++i) {
      const Capacity capacity = capacity_for(i, piece);
      if (!closed(i, capacity).empty() || !fresh(i, capacity).covers(piece.all)) continue;
      const Resources& offered = input_.offers[i].type.resources;
      const std::size_t fits = std::min<std::size_t>(count, offered.times(piece.amount));
      Resources left = offered;
      if (!piece.amount.empty()) left -= piece.amount.multiplied(fits);
      const double filled = piece.amount.empty() ? 0 : left.utilisation_of(offered, piece.amount);
      const std::size_t unneeded = offered.unneeded_special(piece.amount);
      if (best &&
          (unneeded > best_unneeded || (unneeded == best_unneeded && filled <= best_filled)))
        continue;
      best = i;
      best_unneeded = unneeded;
      best_filled = filled;
    }
    return best;
  }

  void add_node(std::size_t offer, Capacity capacity, const std::string& reason) {
    left_.push_back(fresh(offer, capacity));
    TypeOffer& from = input_.offers[offer];
    result_.add.push_back({offer, capacity,
                           "for " + reason +
                               (from.stands_in && capacity == Capacity::kOnDemand
                                    ? "; on demand, since spot nodes are short"
                                    : "")});
    --from.room;
    --input_.room;
    ++(capacity == Capacity::kSpot ? from.spot : from.on_demand);
  }

  void use(std::size_t node, const Resources& amount) {
    left_[node] -= amount;
    if (node < there_) result_.used[node] = true;
  }

  /// On what there is, then on new nodes. Returns how many have a place.
  std::size_t place_pieces(const Piece& piece, std::size_t count, const std::string& reason) {
    std::size_t placed = 0;
    for (std::size_t n = 0; n < left_.size() && placed < count; ++n)
      placed += fill(n, piece, count - placed);
    while (placed < count) {
      auto offer = choose(piece, count - placed);
      if (!offer) break;
      add_node(*offer, capacity_for(*offer, piece), reason);
      placed += fill(left_.size() - 1, piece, count - placed);
    }
    return placed;
  }

  std::size_t fill(std::size_t node, const Piece& piece, std::size_t count) {
    const std::size_t fits = std::min<std::size_t>(count, left_[node].times(piece.all));
    if (fits > 0) use(node, piece.all.multiplied(fits));
    return fits;
  }

  /// Empty: it has a place. Else nothing has changed, and this is why.
  std::string place_group(const runtime::GroupSpec& spec, const std::string& reason) {
    std::vector<Piece> pieces;
    for (std::size_t b = 0; b < spec.bundles.size(); ++b) {
      auto piece = make_piece(spec.bundles[b], b < spec.bundle_labels.size() ? spec.bundle_labels[b]
                                                                             : runtime::Labels());
      if (!piece.ok()) return piece.status().message();
      pieces.push_back(std::move(*piece));
    }
    if (commit_group(spec.strategy, pieces)) return "";
    const Packer before = *this;
    std::string why = add_for_group(spec.strategy, pieces, reason);
    if (why.empty() && commit_group(spec.strategy, pieces)) return "";
    *this = before;
    return why.empty() ? "its bundles do not fit together on the nodes that may be added" : why;
  }

  static std::vector<Resources> amounts(std::span<const Piece> pieces) {
    std::vector<Resources> all;
    for (const Piece& piece : pieces) all.push_back(piece.all);
    return all;
  }

  bool commit_group(runtime::GroupStrategy strategy, std::span<const Piece> pieces) {
    const std::vector<Resources> bundles = amounts(pieces);
    auto chosen = assign_bundles(strategy, bundles, left_);
    if (!chosen) return false;
    for (std::size_t b = 0; b < bundles.size(); ++b) use((*chosen)[b], bundles[b]);
    return true;
  }

  std::string add_for_group(runtime::GroupStrategy strategy, const std::vector<Piece>& pieces,
                            const std::string& reason) {
    if (strategy == runtime::GroupStrategy::kStrictPack) {
      Piece together = pieces.front();
      for (std::size_t b = 1; b < pieces.size(); ++b) {
        together.amount += pieces[b].amount;
        together.all += pieces[b].all;
        together.labels.insert(pieces[b].labels.begin(), pieces[b].labels.end());
      }
      auto offer = choose(together, 1);
      if (!offer) return "its bundles need one node together: " + why_not(together);
      add_node(*offer, capacity_for(*offer, together), reason);
      return "";
    }
    for (const Piece& piece : remaining(strategy, pieces)) {
      const bool on_its_own = strategy == runtime::GroupStrategy::kStrictSpread;
      // What was added for the bundles before this one may have room for it too.
      if (!on_its_own && fits_on_new(piece)) continue;
      auto offer = choose(piece, on_its_own ? 1 : pieces.size());
      if (!offer) return (on_its_own ? "each bundle needs its own node: " : "") + why_not(piece);
      add_node(*offer, capacity_for(*offer, piece), reason);
      if (!on_its_own) trial_.push_back(left_.back()), trial_.back() -= piece.all;
    }
    trial_.clear();
    return "";
  }

  bool fits_on_new(const Piece& piece) {
    for (Resources& left : trial_) {
      if (!left.covers(piece.all)) continue;
      left -= piece.all;
      return true;
    }
    return false;
  }

  /// The bundles that what is there cannot take with the others, as few as can be: those that are
  /// hardest to place are placed first.
  std::vector<Piece> remaining(runtime::GroupStrategy strategy,
                               const std::vector<Piece>& pieces) const {
    struct Kind {
      Piece piece;
      std::size_t count = 0;
    };
    std::vector<Kind> kinds;
    for (const Piece& piece : pieces) {
      auto like = std::find_if(kinds.begin(), kinds.end(),
                               [&](const Kind& kind) { return kind.piece.all == piece.all; });
      if (like == kinds.end()) like = kinds.insert(kinds.end(), {piece, 0});
      ++like->count;
    }
    std::stable_sort(kinds.begin(), kinds.end(), [this](const Kind& a, const Kind& b) {
      const std::size_t left = takers(a.piece), right = takers(b.piece);
      return left != right ? left < right : share(a.piece) > share(b.piece);
    });
    std::vector<Resources> placed;
    std::vector<Piece> rest;
    for (const Kind& kind : kinds) {
      // The largest number that fits next to those before.
      std::size_t low = 0, high = kind.count;
      while (low < high) {
        const std::size_t middle = (low + high + 1) / 2;
        std::vector<Resources> trial = placed;
        trial.insert(trial.end(), middle, kind.piece.all);
        if (assign_bundles(strategy, trial, left_))
          low = middle;
        else
          high = middle - 1;
      }
      placed.insert(placed.end(), low, kind.piece.all);
      rest.insert(rest.end(), kind.count - low, kind.piece);
    }
    return rest;
  }

  std::string why_not(const Piece& piece) const {
    std::string closed_why, nearest;
    double nearest_lacks = 0;
    for (std::size_t i = 0; i < input_.offers.size(); ++i) {
      const NodeType& type = input_.offers[i].type;
      const Capacity capacity = capacity_for(i, piece);
      if (fresh(i, capacity).covers(piece.all)) {
        if (closed_why.empty()) closed_why = closed(i, capacity);
        continue;
      }
      std::string lacks = type.resources.missing(piece.amount);
      double share = 0;  // of what is asked for, summed up
      for (const auto& [name, wanted] : piece.amount.to_map()) {
        const double has =
            static_cast<double>(type.resources.units(name)) / Resources::kUnitsPerOne;
        share += std::max(0.0, 1 - has / wanted);
      }
      for (const auto& [name, value] : unmet(labels_of(i, capacity), piece.labels)) {
        lacks += (lacks.empty() ? "the label " : ", the label ") + name + "=" + value;
        share += 1;
      }
      if (!nearest.empty() && share >= nearest_lacks) continue;
      nearest = "the nearest, '" + type.name + "', lacks " + lacks;
      nearest_lacks = share;
    }
    if (!closed_why.empty()) return closed_why;
    return "no node type has " + describe(piece) + (nearest.empty() ? "" : "; " + nearest);
  }

  PackInput input_;
  std::set<runtime::Labels> wanted_;  // selectors of what waits
  std::size_t there_;                 // nodes of the pool, before the new ones
  std::vector<Resources> left_;       // of each node, with its labels
  std::vector<Resources> trial_;      // of the nodes added for the group at hand
  PackResult result_;
};

}  // namespace

Capacity TypeOffer::next_capacity() const {
  const SpotOptions& mix = type.spot;
  if (mix.share == 0 || stands_in || on_demand < mix.on_demand_base) return Capacity::kOnDemand;
  const std::size_t beyond = spot + on_demand - mix.on_demand_base;
  return static_cast<double>(spot) < mix.share * static_cast<double>(beyond + 1)
             ? Capacity::kSpot
             : Capacity::kOnDemand;
}

PackResult pack(const runtime::Demand& demand, PackInput input) {
  Packer packer(std::move(input), demand);
  packer.place_groups(demand.groups);
  packer.place_all(demand.actors, "actor");
  packer.place_all(demand.jobs, "job");
  return packer.take();
}

}  // namespace placement
