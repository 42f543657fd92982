#include "placement/scheduler/cluster_scheduler.h"

#include <algorithm>
#include <tuple>

#include "placement/resource/label_selector.h"
#include "placement/resource/plural.h"
#include "runtime/core/check.h"

namespace placement {

using runtime::ActorPlace;
using runtime::ActorScheduling;
using runtime::ActorSpec;
using runtime::GroupPlace;
using runtime::NodeId;
using runtime::Result;
using runtime::Status;

namespace {

constexpr std::size_t kBundlesMax = 10000;
constexpr double kPackUpTo = 0.5;

std::string name_of(const runtime::GroupSpec& spec) {
  return "placement group " + (spec.name.empty() ? spec.group.short_hex() : "'" + spec.name + "'");
}

Result<Resources> checked(const runtime::ResourceMap& amounts, const runtime::Labels& labels) {
  if (Status status = runtime::check_resource_names(amounts); !status.ok()) return status;
  auto demand = Resources::from_map(amounts);
  if (!demand.ok()) return demand;
  if (Status status = check_gpus(*demand); !status.ok()) return status;
  if (Status status = check_selectors(labels); !status.ok()) return status;
  return demand;
}

Result<std::vector<BundleNeed>> needs_of(const runtime::GroupSpec& spec) {
  static const runtime::Labels kNone;
  const std::string name = name_of(spec);
  if (spec.bundles.empty()) return runtime::invalid_argument(name + " has no bundles");
  if (spec.bundles.size() > kBundlesMax)
    return runtime::invalid_argument(name + " has more than 10000 bundles");
  if (spec.bundle_labels.size() > spec.bundles.size()) {
    return runtime::invalid_argument(name + " has " + std::to_string(spec.bundles.size()) +
                                     " bundles, and labels for " +
                                     std::to_string(spec.bundle_labels.size()));
  }
  std::vector<BundleNeed> needs;
  needs.reserve(spec.bundles.size());
  for (std::size_t i = 0; i < spec.bundles.size(); ++i) {
    const runtime::Labels& labels = i < spec.bundle_labels.size() ? spec.bundle_labels[i] : kNone;
    auto amount = checked(spec.bundles[i], labels);
    if (!amount.ok()) return amount.status().with_context(name + ", bundle " + std::to_string(i));
    if (amount->empty())
      return runtime::invalid_argument(name + ": bundle " + std::to_string(i) +
                                       " asks for nothing");
    needs.push_back({*std::move(amount), labels});
  }
  return needs;
}

/// "CPU 2 on a node with zone=a"
std::string text_of(const BundleNeed& need) {
  if (need.labels.empty()) return need.amount.to_string();
  return (need.amount.empty() ? "a node with " : need.amount.to_string() + " on a node with ") +
         to_string(need.labels);
}

}  // namespace

// -- Nodes

ClusterScheduler::Node* ClusterScheduler::find(NodeId id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Status ClusterScheduler::add_node(const runtime::NodeInfo& info) {
  if (find(info.node))
    return runtime::invalid_argument("node " + info.node.short_hex() + " has joined already");
  if (Status status = runtime::check_resource_names(info.resources); !status.ok())
    return status.with_context("node " + info.node.short_hex());
  auto total = Resources::from_map(info.resources);
  if (!total.ok()) return total.status().with_context("node " + info.node.short_hex());
  nodes_.push_back(
      std::make_unique<Node>(Node{info.node, info.address, info.labels, *total, Room(*total)}));
  by_id_[info.node] = nodes_.back().get();
  return {};
}

void ClusterScheduler::remove_node(NodeId id) {
  by_id_.erase(id);
  std::erase_if(nodes_, [&](const auto& node) { return node->id == id; });
  std::erase_if(reservations_, [&](const auto& entry) { return entry.second.node == id; });
}

void ClusterScheduler::set_open(NodeId id, bool open) {
  if (Node* node = find(id)) node->open = open;
}

void ClusterScheduler::begin_drain(NodeId id) {
  if (Node* node = find(id)) node->drains = true;
}

runtime::ResourceMap ClusterScheduler::available(NodeId id) const {
  const Node* node = find(id);
  return node ? node->room.left().to_map() : runtime::ResourceMap{};
}

// -- Actors

Result<ActorPlace> ClusterScheduler::move_actor(const ActorSpec& actor) {
  CHECK(!actor.bundle);  // it goes where its group goes
  auto demand = checked(actor.resources, actor.labels);
  if (!demand.ok()) return demand.status().with_context("actor " + actor.class_name);
  auto place = place_on_node(actor, *demand);
  if (!place.ok()) return place;
  release_actor(actor.actor);
  count(actor, *demand, *place, std::nullopt);
  return place;
}

Status ClusterScheduler::check_move(const runtime::GroupSpec& spec) const {
  auto needs = needs_of(spec);
  if (!needs.ok()) return needs.status();
  std::map<NodeId, Room> rooms;  // with what the group would give back
  std::vector<NodeOffer> offers;
  for (const auto& node : nodes_) {
    if (!node->takes_more()) continue;
    Room& room = rooms.emplace(node->id, node->room).first->second;
    offers.push_back({&room, &node->labels});
  }
  if (auto group = groups_.find(spec.group); group != groups_.end()) {
    for (const Bundle& bundle : group->second) {
      if (auto room = rooms.find(bundle.node); room != rooms.end())
        room->second.give(bundle.total, bundle.gpus);
    }
  }
  if (assign_bundles(spec.strategy, *needs, offers)) return {};
  return explain(spec, name_of(spec), *needs);
}

Result<ActorPlace> ClusterScheduler::place_actor(const ActorSpec& actor) {
  auto demand = checked(actor.resources, actor.labels);
  if (!demand.ok()) return demand.status().with_context("actor " + actor.class_name);
  if (reservations_.contains(actor.actor)) {
    return runtime::invalid_argument("actor " + actor.actor.short_hex() + " has its place already");
  }
  auto place = actor.bundle ? place_in_bundle(actor, *demand) : place_on_node(actor, *demand);
  if (place.ok()) count(actor, *demand, *place, actor.bundle);
  return place;
}

void ClusterScheduler::count(const ActorSpec& actor, const Resources& demand,
                             const ActorPlace& place, std::optional<runtime::BundleSlot> bundle) {
  reservations_[actor.actor] = {place.node, demand, place.gpus, actor.class_name, bundle};
  Node* node = find(place.node);
  ++node->actors;
  ++node->actors_of_class[actor.class_name];
  if (bundle) groups_.at(bundle->group)[bundle->index].users.insert(actor.actor);
}

Result<ActorPlace> ClusterScheduler::place_in_bundle(const ActorSpec& actor,
                                                     const Resources& demand) {
  const std::string who = "actor " + actor.class_name + ": ";
  const std::string group_name = "placement group " + actor.bundle->group.short_hex();
  auto group = groups_.find(actor.bundle->group);
  if (group == groups_.end())
    return runtime::not_found(who + group_name + " does not exist, or is not placed yet");
  if (actor.bundle->index >= group->second.size()) {
    return runtime::not_found(who + group_name + " has no bundle " +
                              std::to_string(actor.bundle->index) + "; it has " +
                              std::to_string(group->second.size()));
  }
  Bundle& bundle = group->second[actor.bundle->index];
  const Node* node = find(bundle.node);
  if (!node) return runtime::not_found(who + "the node of its bundle is gone");
  if (node->drains)
    return runtime::resource_exhausted(who + "node " + node->id.short_hex() +
                                       " of its bundle is being drained");
  const std::string in_bundle =
      who + "bundle " + std::to_string(actor.bundle->index) + " of " + group_name;
  const bool is_elsewhere = actor.node && *actor.node != node->id && !actor.node_is_preferred;
  if (is_elsewhere)
    return runtime::invalid_argument(in_bundle + " is on node " + node->id.short_hex() +
                                     ", not on node " + actor.node->short_hex() +
                                     ", which the actor is bound to");
  if (!meets(node->labels, actor.labels)) {
    return runtime::invalid_argument(in_bundle + " is on node " + node->id.short_hex() +
                                     ", which is not " +
                                     to_string(unmet(node->labels, actor.labels)));
  }
  if (bundle.room.covers(demand)) return ActorPlace{bundle.node, bundle.room.take(demand)};
  Status status = runtime::resource_exhausted(in_bundle + " lacks " +
                                              bundle.room.missing(demand, bundle.total));
  if (Room(bundle.total, bundle.gpus).covers(demand)) return status;
  // The bundle never grows, so that waiting would be useless.
  return runtime::invalid_argument(status.message() + "; the whole bundle is " +
                                   bundle.total.to_string());
}

ClusterScheduler::Node* ClusterScheduler::choose(const ActorSpec& actor,
                                                 const Resources& demand) const {
  const auto takes = [&](const Node& node) {
    return node.takes_more() && node.room.covers(demand) && meets(node.labels, actor.labels);
  };
  if (actor.node) {
    Node* node = find(*actor.node);
    if (node && takes(*node)) return node;
    if (!actor.node_is_preferred) return nullptr;
  }
  Node* best = nullptr;
  std::pair<double, double> best_cost;
  for (const auto& node : nodes_) {
    if (!takes(*node)) continue;
    // An actor that asks for nothing counts by how many there are.
    const double used = demand.empty() ? static_cast<double>(node->actors)
                                       : node->room.left().utilisation_with(node->total, demand);
    std::pair<double, double> cost(used, 0);
    if (actor.scheduling == ActorScheduling::kPack) {
      cost = {-used, 0};
    } else if (actor.scheduling == ActorScheduling::kSpread) {
      auto same = node->actors_of_class.find(actor.class_name);
      cost = {same == node->actors_of_class.end() ? 0.0 : static_cast<double>(same->second), used};
    } else if (!demand.empty() && used <= kPackUpTo) {
      cost = {0, 0};
    }
    if (best && cost >= best_cost) continue;
    best = node.get();
    best_cost = cost;
  }
  return best;
}

Result<ActorPlace> ClusterScheduler::place_on_node(const ActorSpec& actor,
                                                   const Resources& demand) {
  Node* node = choose(actor, demand);
  if (!node) return explain(actor, demand);
  return ActorPlace{node->id, node->room.take(demand)};
}

void ClusterScheduler::release_actor(runtime::ActorId actor) {
  auto found = reservations_.find(actor);
  if (found == reservations_.end()) return;
  const Reservation& reservation = found->second;
  Node* node = find(reservation.node);
  if (node) {
    --node->actors;
    auto same = node->actors_of_class.find(reservation.class_name);
    if (--same->second == 0) node->actors_of_class.erase(same);
  }
  if (reservation.bundle) {
    Bundle& bundle = groups_.at(reservation.bundle->group)[reservation.bundle->index];
    bundle.room.give(reservation.amount, reservation.gpus);
    bundle.users.erase(actor);
  } else if (node) {
    node->room.give(reservation.amount, reservation.gpus);
  }
  reservations_.erase(found);
}

void ClusterScheduler::restore_actor(const ActorSpec& actor, const ActorPlace& place) {
  auto demand = Resources::from_map(actor.resources);
  Node* node = find(place.node);
  if (!demand.ok() || !node || reservations_.contains(actor.actor)) return;
  // Of a group that is removed, or torn, what its actors use is the node's own until they have
  // ended.
  auto group = actor.bundle ? groups_.find(actor.bundle->group) : groups_.end();
  const bool in_bundle = group != groups_.end() && actor.bundle->index < group->second.size();
  Room& room = in_bundle ? group->second[actor.bundle->index].room : node->room;
  if (room.take(*demand, place.gpus))
    count(actor, *demand, place, in_bundle ? actor.bundle : std::nullopt);
}

// -- Groups

Result<GroupPlace> ClusterScheduler::place_group(const runtime::GroupSpec& spec) {
  auto needs = needs_of(spec);
  if (!needs.ok()) return needs.status();
  if (groups_.contains(spec.group))
    return runtime::invalid_argument(name_of(spec) + " exists already");
  std::vector<Node*> open;
  std::vector<NodeOffer> offers;
  for (const auto& node : nodes_) {
    if (!node->takes_more()) continue;
    open.push_back(node.get());
    offers.push_back({&node->room, &node->labels});
  }
  auto chosen = assign_bundles(spec.strategy, *needs, offers);
  if (!chosen) return explain(spec, name_of(spec), *needs);
  // Whole GPUs before parts of one, as they were weighed.
  std::vector<std::size_t> order(needs->size());
  for (std::size_t b = 0; b < order.size(); ++b) order[b] = b;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return (*needs)[a].amount.units("GPU") > (*needs)[b].amount.units("GPU");
  });
  GroupPlace place;
  place.nodes.resize(order.size());
  place.gpus.resize(order.size());
  std::vector<Bundle>& group = groups_[spec.group];
  group.resize(order.size());
  for (std::size_t b : order) {
    Node& node = *open[(*chosen)[b]];
    const Resources& amount = (*needs)[b].amount;
    if (!node.room.covers(
            amount)) {  // the parts of GPUs, in another order than they were weighed in
      remove_group(spec.group);
      return runtime::resource_exhausted(name_of(spec) + " does not fit: the GPUs of node " +
                                         node.id.short_hex() + " are free in parts only");
    }
    place.nodes[b] = node.id;
    place.gpus[b] = node.room.take(amount);
    group[b] = {node.id, amount, place.gpus[b], Room(amount, place.gpus[b])};
  }
  return place;
}

void ClusterScheduler::remove_group(runtime::GroupId id) {
  auto group = groups_.find(id);
  if (group == groups_.end()) return;
  for (const Bundle& bundle : group->second) {
    Node* node = find(bundle.node);
    if (!node) continue;  // and what was reserved on it is forgotten
    node->room.give(bundle.total, bundle.gpus);
    // What actors still use becomes their own reservation.
    for (runtime::ActorId actor : bundle.users) {
      Reservation& reservation = reservations_.at(actor);
      reservation.bundle.reset();
      const bool taken = node->room.take(reservation.amount, reservation.gpus);
      CHECK(taken);
    }
  }
  groups_.erase(group);
}

void ClusterScheduler::restore_group(const runtime::GroupSpec& spec, const GroupPlace& place) {
  auto needs = needs_of(spec);
  const bool is_whole =
      needs.ok() && place.nodes.size() == needs->size() && place.gpus.size() == needs->size();
  if (!is_whole || groups_.contains(spec.group)) return;
  std::vector<Bundle> group;
  for (std::size_t b = 0; b < needs->size(); ++b) {
    const Resources& amount = (*needs)[b].amount;
    Node* node = find(place.nodes[b]);
    const bool is_there = node && node->room.take(amount, place.gpus[b]);
    const Resources got = is_there ? amount : Resources();
    group.push_back({place.nodes[b], got, is_there ? place.gpus[b] : GpuList(),
                     is_there ? Room(got, place.gpus[b]) : Room()});
  }
  groups_.emplace(spec.group, std::move(group));
}

// -- Why not

std::string ClusterScheduler::nearest(const BundleNeed& need, const RoomOf& room_of) const {
  // Nodes with the right labels come before others, then those that could hold it when they are
  // idle. Then comes the one that lacks the smallest share. Of equals it is the one that lacks
  // least when it is idle.
  const Node* best = nullptr;
  const Room* left = nullptr;
  const Node* leaving = nullptr;  // could hold it, and is drained
  std::tuple<std::size_t, bool, bool, double, double> best_cost;
  bool ever = false;
  std::size_t counted = 0;
  const bool has_gpus = need.amount.units("GPU") > 0;
  const auto could_hold = [&](const Node& node) {
    return node.total.covers(need.amount) && (!has_gpus || Room(node.total).covers(need.amount));
  };
  for (const auto& node : nodes_) {
    const Room* room = room_of(*node);
    if (!room) continue;
    const std::size_t labels = unmet(node->labels, need.labels).size();
    if (node->drains) {
      if (!leaving && labels == 0 && could_hold(*node)) leaving = node.get();
      continue;
    }
    ++counted;
    ever = ever || (labels == 0 && could_hold(*node));
    const std::tuple<std::size_t, bool, bool, double, double> cost(
        labels, !could_hold(*node), !node->open, room->left().distance_to(need.amount),
        node->total.distance_to(need.amount));
    if (best && cost >= best_cost) continue;
    best = node.get();
    left = room;
    best_cost = cost;
  }
  const std::string drained = leaving ? leaving->id.short_hex() + " (" + leaving->address +
                                            "), which could hold it, is being drained"
                                      : "";
  if (!best)
    return leaving          ? "node " + drained
           : nodes_.empty() ? "there are no nodes"
                            : "all nodes are being drained";
  std::string text = (counted == 1 ? "the only node, " : "the nearest node, ") +
                     best->id.short_hex() + " (" + best->address + "), ";
  if (const runtime::Labels missing = unmet(best->labels, need.labels); !missing.empty()) {
    text += "lacks the labels " + to_string(missing);
  } else if (left->covers(need.amount)) {
    text += best->open ? "has room now" : "takes nothing new now";
  } else {
    text += "lacks " + left->missing(need.amount, best->total);
    if (!could_hold(*best)) text += " even when idle";
  }
  if (leaving) text += "; node " + drained;
  if (ever) return text;
  text +=
      "; no node that is there could ever hold it, and it waits for one that can: start one with ";
  if (!need.amount.empty()) text += need.amount.to_string();
  if (!need.labels.empty())
    text += std::string(need.amount.empty() ? "" : " and ") + "labels that meet " +
            to_string(need.labels);
  return text +
         " (starling start --address HOST:PORT --resources ... --label ...), or ask for less";
}

Status ClusterScheduler::explain(const ActorSpec& actor, const Resources& demand) const {
  const BundleNeed need{demand, actor.labels};
  const bool is_bound = actor.node && !actor.node_is_preferred;
  if (is_bound && !find(*actor.node)) {
    return runtime::not_found("actor " + actor.class_name + ": node " + actor.node->short_hex() +
                              ", which it is bound to, is not in the cluster");
  }
  std::string text = "actor " + actor.class_name + " needs " + text_of(need) + ", which " +
                     (is_bound ? "the node that it is bound to does not have" : "no node has") +
                     " free: ";
  return runtime::resource_exhausted(text + nearest(need, [&](const Node& node) {
                                       return is_bound && node.id != *actor.node ? nullptr
                                                                                 : &node.room;
                                     }));
}

std::string ClusterScheduler::first_without_place(const runtime::GroupSpec& spec,
                                                  std::span<const BundleNeed> bundles,
                                                  std::span<const NodeOffer> offers) const {
  // The most bundles from the first on that fit: between those that do and those that do not.
  std::size_t fit = 0, too_many = bundles.size();
  std::vector<std::size_t> chosen;
  while (too_many - fit > 1) {
    const std::size_t some = (fit + too_many) / 2;
    auto assigned = assign_bundles(spec.strategy, bundles.first(some), offers);
    if (!assigned) {
      too_many = some;
      continue;
    }
    fit = some;
    chosen = *std::move(assigned);
  }
  std::vector<Room> left;
  std::vector<bool> used(offers.size());
  std::map<const Room*, std::size_t> index;  // by what the node itself has
  for (std::size_t n = 0; n < offers.size(); ++n) {
    left.push_back(*offers[n].room);
    index[offers[n].room] = n;
  }
  for (std::size_t b = 0; b < chosen.size(); ++b) {
    used[chosen[b]] = true;
    if (left[chosen[b]].covers(bundles[b].amount)) left[chosen[b]].take(bundles[b].amount);
  }
  const bool own_node = spec.strategy == runtime::GroupStrategy::kStrictSpread;
  const std::string text = std::to_string(fit) + " of them find a place, and the next needs " +
                           text_of(bundles[fit]) +
                           (own_node ? " on its own node; of the others " : "; then ");
  return text + nearest(bundles[fit], [&](const Node& node) -> const Room* {
           auto found = index.find(&node.room);
           return found == index.end() || (own_node && used[found->second]) ? nullptr
                                                                            : &left[found->second];
         });
}

Status ClusterScheduler::explain(const runtime::GroupSpec& spec, const std::string& name,
                                 std::span<const BundleNeed> bundles) const {
  std::string text = name + " (" + std::string(to_string(spec.strategy)) + ", " +
                     plural(bundles.size(), "bundle") + ") does not fit: ";
  if (nodes_.empty()) return runtime::resource_exhausted(text + "there are no nodes");
  const RoomOf as_it_is = [](const Node& node) { return &node.room; };
  std::vector<NodeOffer> now, idle;
  std::vector<Room> rooms;
  rooms.reserve(nodes_.size());
  for (const auto& node : nodes_) {
    rooms.emplace_back(node->total);
    idle.push_back({&rooms.back(), &node->labels});
    if (node->takes_more()) now.push_back({&node->room, &node->labels});
  }
  if (spec.strategy == runtime::GroupStrategy::kStrictPack) {
    // All of them are one, as far as a node is concerned.
    BundleNeed whole;
    for (const BundleNeed& bundle : bundles) {
      whole.amount += bundle.amount;
      whole.labels.insert(bundle.labels.begin(), bundle.labels.end());
    }
    return runtime::resource_exhausted(text + "all on one node they need " + text_of(whole) + "; " +
                                       nearest(whole, as_it_is));
  }
  // A bundle that no node takes by itself says more than what is left for the last.
  std::map<const BundleNeed*, bool,
           decltype([](const BundleNeed* a, const BundleNeed* b) { return *a < *b; })>
      seen;
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    if (!seen.try_emplace(&bundles[b], true).second) continue;
    const auto takes = [&](const NodeOffer& node) {
      return node.room->covers(bundles[b].amount) && meets(*node.labels, bundles[b].labels);
    };
    if (std::any_of(now.begin(), now.end(), takes)) continue;
    return runtime::resource_exhausted(text + "bundle " + std::to_string(b) + " needs " +
                                       text_of(bundles[b]) + ", which no node has free; " +
                                       nearest(bundles[b], as_it_is));
  }
  if (spec.strategy == runtime::GroupStrategy::kStrictSpread && bundles.size() > now.size()) {
    text += "it needs a node for each bundle, and there " +
            (now.size() == 1 ? std::string("is 1 node") : "are " + plural(now.size(), "node"));
  } else {
    text += first_without_place(spec, bundles, now);
  }
  if (!assign_bundles(spec.strategy, bundles, idle)) {
    text +=
        "; the cluster could never hold it as a whole, not even idle, and it waits for more nodes. "
        "Start some (starling start --address HOST:PORT), or ask for less";
  }
  return runtime::resource_exhausted(text);
}

}  // namespace placement
