#include "placement/scheduler/cluster_scheduler.h"

#include <algorithm>

#include "placement/group/strategy.h"

namespace placement {

using runtime::ActorSpec;
using runtime::NodeId;
using runtime::Result;
using runtime::Status;

namespace {

// Messages name this many nodes; the rest are counted.
constexpr std::size_t kNodesExplainedMax = 8;
constexpr std::size_t kBundlesMax = 10000;
constexpr double kPackUpTo = 0.5;

/// Those that are wanted and not offered.
runtime::Labels missing_labels(const runtime::Labels& offered, const runtime::Labels& wanted) {
  runtime::Labels missing;
  for (const auto& label : wanted) {
    auto found = offered.find(label.first);
    if (found == offered.end() || found->second != label.second) missing.insert(label);
  }
  return missing;
}

/// "zone=a, kind=fast"
std::string to_string(const runtime::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ", ") + name + "=" + value;
  return text;
}

}  // namespace

ClusterScheduler::Node* ClusterScheduler::find(NodeId id) {
  auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
  return found == nodes_.end() ? nullptr : &*found;
}

Status ClusterScheduler::add_node(const runtime::NodeInfo& info) {
  if (find(info.node)) return runtime::invalid_argument("node " + info.node.short_hex() + " has joined already");
  auto total = Resources::from_map(info.resources);
  if (!total.ok()) return total.status().with_context("node " + info.node.short_hex());
  nodes_.push_back({info.node, info.address, info.labels, *total, *total, 0, false});
  return {};
}

void ClusterScheduler::remove_node(NodeId id) {
  std::erase_if(nodes_, [&](const Node& node) { return node.id == id; });
  std::erase_if(reservations_, [&](const auto& entry) { return entry.second.node == id; });
}

void ClusterScheduler::begin_drain(NodeId id) {
  if (Node* node = find(id)) node->drains = true;
}

Result<NodeId> ClusterScheduler::move_actor(const ActorSpec& actor) {
  if (actor.bundle) {
    return runtime::resource_exhausted("actor " + actor.class_name + " stands on bundle " + std::to_string(actor.bundle->index) + " of placement group " +
                                       actor.bundle->group.short_hex() + ", which does not move");
  }
  auto demand = Resources::from_map(actor.resources);
  if (!demand.ok()) return demand.status().with_context("actor " + actor.class_name);
  auto node = place_on_node(actor, *demand);
  if (!node.ok()) return node;
  release_actor(actor.actor);
  reservations_[actor.actor] = {*node, *demand, std::nullopt};
  if (Node* found = find(*node)) ++found->actors;
  return node;
}

Result<NodeId> ClusterScheduler::place_actor(const ActorSpec& actor) {
  auto demand = Resources::from_map(actor.resources);
  if (!demand.ok()) return demand.status().with_context("actor " + actor.class_name);
  if (reservations_.contains(actor.actor)) {
    return runtime::invalid_argument("actor " + actor.actor.short_hex() + " has its place already");
  }
  auto node = actor.bundle ? place_in_bundle(actor, *demand) : place_on_node(actor, *demand);
  if (!node.ok()) return node;
  reservations_[actor.actor] = {*node, *demand, actor.bundle};
  if (Node* found = find(*node)) ++found->actors;
  return node;
}

Result<NodeId> ClusterScheduler::place_in_bundle(const ActorSpec& actor, const Resources& demand) {
  auto group = groups_.find(actor.bundle->group);
  if (group == groups_.end()) {
    return runtime::not_found("actor " + actor.class_name + ": placement group " + actor.bundle->group.short_hex() +
                              " does not exist, or is not placed yet");
  }
  if (actor.bundle->index >= group->second.size()) {
    return runtime::not_found("actor " + actor.class_name + ": placement group " + actor.bundle->group.short_hex() +
                              " has no bundle " + std::to_string(actor.bundle->index) + "; it has " +
                              std::to_string(group->second.size()));
  }
  Bundle& bundle = group->second[actor.bundle->index];
  if (!find(bundle.node)) return runtime::not_found("actor " + actor.class_name + ": the node of its bundle is gone");
  if (find(bundle.node)->drains) {
    return runtime::resource_exhausted("actor " + actor.class_name + ": node " + bundle.node.short_hex() + " of its bundle is being drained");
  }
  if (!bundle.available.covers(demand)) {
    Status status = runtime::resource_exhausted(
        "actor " + actor.class_name + ": bundle " + std::to_string(actor.bundle->index) + " of placement group " +
        actor.bundle->group.short_hex() + " lacks " + bundle.available.missing(demand));
    if (bundle.total.covers(demand)) return status;
    // The bundle never grows, so that waiting would be in vain.
    return runtime::invalid_argument(status.message() + "; the whole bundle is " + bundle.total.to_string());
  }
  bundle.available -= demand;
  return bundle.node;
}

Result<NodeId> ClusterScheduler::place_on_node(const ActorSpec& actor, const Resources& demand) {
  Node* best = nullptr;
  double best_utilisation = 0;
  for (Node& node : nodes_) {
    if (node.drains || (actor.node && node.id != *actor.node)) continue;
    if (!missing_labels(node.labels, actor.labels).empty() || !node.available.covers(demand)) continue;
    Resources left = node.available;
    left -= demand;
    // An actor that asks for nothing counts by how many there are.
    double utilisation =
        demand.empty() ? static_cast<double>(node.actors) : left.utilisation_of(node.total, demand);
    if (!demand.empty() && utilisation <= kPackUpTo) utilisation = 0;
    if (!best || utilisation < best_utilisation) {
      best = &node;
      best_utilisation = utilisation;
    }
  }
  if (!best) return explain(actor, demand);
  best->available -= demand;
  return best->id;
}

Status ClusterScheduler::explain(const ActorSpec& actor, const Resources& demand) const {
  std::string text = "actor " + actor.class_name + " needs " + (demand.empty() && !actor.labels.empty() ? "" : demand.to_string());
  if (!actor.labels.empty()) text += std::string(demand.empty() ? "a node with " : " on a node with ") + to_string(actor.labels);
  text += ", which no node has free: ";
  if (nodes_.empty()) return runtime::resource_exhausted(text + "there are no nodes");
  std::size_t shown = 0;
  bool bound_to_missing = actor.node.has_value();
  for (const Node& node : nodes_) {
    if (actor.node && node.id != *actor.node) continue;
    bound_to_missing = false;
    if (shown++ >= kNodesExplainedMax) continue;
    if (shown > 1) text += "; ";
    text += "node " + node.id.short_hex() + " (" + node.address + ") ";
    if (node.drains) {
      text += "is being drained";
    } else if (const runtime::Labels missing = missing_labels(node.labels, actor.labels); !missing.empty()) {
      text += "lacks the labels " + to_string(missing);
    } else {
      text += "lacks " + node.available.missing(demand);
      if (!node.total.covers(demand)) text += " even when idle";
    }
  }
  if (bound_to_missing) {
    return runtime::not_found("actor " + actor.class_name + ": node " + actor.node->short_hex() +
                              ", which it is bound to, is not in the cluster");
  }
  if (shown > kNodesExplainedMax) text += "; and " + std::to_string(shown - kNodesExplainedMax) + " more";
  return runtime::resource_exhausted(text);
}

void ClusterScheduler::release_actor(runtime::ActorId actor) {
  auto found = reservations_.find(actor);
  if (found == reservations_.end()) return;
  const Reservation& reservation = found->second;
  Node* node = find(reservation.node);
  if (node) --node->actors;
  if (reservation.bundle) {
    // A removed group has given its bundles back already.
    auto group = groups_.find(reservation.bundle->group);
    if (group != groups_.end()) group->second[reservation.bundle->index].available += reservation.amount;
  } else if (node) {
    node->available += reservation.amount;
  }
  reservations_.erase(found);
}

Result<std::vector<NodeId>> ClusterScheduler::place_group(const runtime::GroupSpec& spec) {
  std::string name = "placement group " + (spec.name.empty() ? spec.group.short_hex() : "'" + spec.name + "'");
  if (spec.bundles.empty()) return runtime::invalid_argument(name + " has no bundles");
  if (spec.bundles.size() > kBundlesMax) return runtime::invalid_argument(name + " has more than 10000 bundles");
  if (groups_.contains(spec.group)) return runtime::invalid_argument(name + " exists already");
  std::vector<Resources> bundles;
  for (std::size_t i = 0; i < spec.bundles.size(); ++i) {
    auto bundle = Resources::from_map(spec.bundles[i]);
    if (!bundle.ok()) return bundle.status().with_context(name + ", bundle " + std::to_string(i));
    if (bundle->empty()) return runtime::invalid_argument(name + ": bundle " + std::to_string(i) + " asks for nothing");
    bundles.push_back(std::move(*bundle));
  }
  std::vector<Resources> left;
  for (const Node& node : nodes_) left.push_back(node.drains ? Resources() : node.available);
  auto chosen = assign_bundles(spec.strategy, bundles, left);
  if (!chosen) {
    std::string text = name + " (" + std::string(to_string(spec.strategy)) + ", " + std::to_string(bundles.size()) +
                       " bundles, first: " + bundles[0].to_string() + ") does not fit: ";
    if (nodes_.empty()) text += "there are no nodes";
    for (std::size_t n = 0; n < nodes_.size() && n < kNodesExplainedMax; ++n) {
      if (n > 0) text += "; ";
      text += "node " + nodes_[n].id.short_hex() + " (" + nodes_[n].address + ") ";
      if (nodes_[n].drains) text += "is being drained";
      else text += "has " + nodes_[n].available.to_string() + " free of " + nodes_[n].total.to_string();
    }
    return runtime::resource_exhausted(text);
  }
  std::vector<NodeId> ids;
  std::vector<Bundle>& group = groups_[spec.group];
  for (std::size_t b = 0; b < bundles.size(); ++b) {
    Node& node = nodes_[(*chosen)[b]];
    node.available -= bundles[b];
    group.push_back({node.id, bundles[b], bundles[b]});
    ids.push_back(node.id);
  }
  return ids;
}

void ClusterScheduler::remove_group(runtime::GroupId id) {
  auto group = groups_.find(id);
  if (group == groups_.end()) return;
  for (const Bundle& bundle : group->second) {
    if (Node* node = find(bundle.node)) node->available += bundle.total;
  }
  groups_.erase(group);
}

void ClusterScheduler::restore_actor(const ActorSpec& actor, NodeId id) {
  auto demand = Resources::from_map(actor.resources);
  Node* node = find(id);
  if (!demand.ok() || !node || reservations_.contains(actor.actor)) return;
  if (actor.bundle) {
    auto group = groups_.find(actor.bundle->group);
    if (group == groups_.end() || actor.bundle->index >= group->second.size()) return;
    Bundle& bundle = group->second[actor.bundle->index];
    if (!bundle.available.covers(*demand)) return;
    bundle.available -= *demand;
  } else {
    if (!node->available.covers(*demand)) return;
    node->available -= *demand;
  }
  reservations_[actor.actor] = {id, *demand, actor.bundle};
  ++node->actors;
}

void ClusterScheduler::restore_group(const runtime::GroupSpec& spec, const std::vector<NodeId>& ids) {
  if (groups_.contains(spec.group) || ids.size() != spec.bundles.size()) return;
  std::vector<Bundle>& group = groups_[spec.group];
  for (std::size_t b = 0; b < ids.size(); ++b) {
    auto bundle = Resources::from_map(spec.bundles[b]);
    if (!bundle.ok()) bundle = Resources();
    Node* node = find(ids[b]);
    if (node && node->available.covers(*bundle)) node->available -= *bundle;
    group.push_back({ids[b], *bundle, *bundle});
  }
}

runtime::ResourceMap ClusterScheduler::available(NodeId id) const {
  Node* node = const_cast<ClusterScheduler*>(this)->find(id);
  return node ? node->available.to_map() : runtime::ResourceMap{};
}

}  // namespace placement
