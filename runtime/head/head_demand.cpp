// The head's part for whoever adds and removes nodes: what waits, what is idle, and what is to take no new work.
#include <algorithm>
#include <map>

#include "runtime/core/log.h"
#include "runtime/head/head.h"

namespace runtime {

namespace {

/// What pending things have in common, each shape once.
class Shapes {
 public:
  explicit Shapes(Demand& demand) : demand_(demand) {}

  void add(const ActorSpec& actor) {
    auto [at, is_new] = places_.try_emplace({actor.resources, actor.labels}, demand_.actors.size());
    if (!is_new) {
      if (at->second < demand_.actors.size()) ++demand_.actors[at->second].count;
      else ++demand_.unlisted;
      return;
    }
    if (demand_.actors.size() >= Demand::kShapesMax) {
      places_.erase(at);
      ++demand_.unlisted;
      return;
    }
    demand_.actors.push_back({actor.resources, actor.labels, 1, "actor " + actor.class_name + " " + actor.actor.short_hex()});
  }

  void add(const GroupSpec& group) {
    GroupSpec shape = group;
    shape.group = {};
    shape.name.clear();
    // Those that wait in line are mostly alike: the one that was met last is looked at first.
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const std::size_t at = (last_ + i) % shapes_.size();
      if (shapes_[at] != shape) continue;
      ++demand_.groups[at].count;
      last_ = at;
      return;
    }
    if (shapes_.size() >= Demand::kShapesMax || bundles_ + group.bundles.size() > Demand::kBundlesMax) {
      ++demand_.unlisted;
      return;
    }
    bundles_ += group.bundles.size();
    last_ = shapes_.size();
    shapes_.push_back(std::move(shape));
    demand_.groups.push_back({group, 1});
  }

 private:
  Demand& demand_;
  std::map<std::pair<ResourceMap, Labels>, std::size_t> places_;
  std::vector<GroupSpec> shapes_;  // of demand_.groups
  std::size_t bundles_ = 0;
  std::size_t last_ = 0;  // that a group was like
};

}  // namespace

Demand Head::demand() const {
  Demand demand;
  Shapes shapes(demand);
  for (const PendingGroup& pending : pending_groups_) {
    if (const GroupState* group = tables_.group(pending.group)) shapes.add(group->spec);
  }
  for (const PendingActor& pending : pending_actors_) {
    const ActorRecord* record = tables_.actor(pending.actor);
    if (!record) continue;
    const GroupState* group = record->spec.bundle ? tables_.group(record->spec.bundle->group) : nullptr;
    if (group && !group->placed) continue;  // it is the group that waits
    if (record->spec.bundle || record->spec.node) ++demand.bound;
    else shapes.add(record->spec);
  }

  std::map<NodeId, NodeUse> nodes;
  for (const auto& [id, info] : tables_.nodes()) {
    nodes[id].info = info;
    nodes[id].info.available = scheduler_->available(id);
  }
  const auto use_of = [&nodes](NodeId id) {
    auto found = nodes.find(id);
    return found == nodes.end() ? nullptr : &found->second;
  };
  for (const auto& [id, record] : tables_.actors()) {
    NodeUse* use = use_of(record.node);
    if (!use) continue;
    use->last_placed = std::max(use->last_placed, record.incarnation);
    if (record.phase == ActorPhase::kStarting || record.phase == ActorPhase::kAlive) ++use->actors;
  }
  for (const auto& [id, group] : tables_.groups()) {
    for (NodeId node : group.nodes) {
      if (NodeUse* use = use_of(node)) ++use->bundles;
    }
  }
  for (const auto& [id, record] : tables_.jobs()) {
    NodeUse* use = use_of(record.info.node);
    if (use && record.info.running) ++use->jobs;
  }
  for (const auto& [name, versions] : tables_.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* places = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!places || places->size() != 1) continue;
      if (NodeUse* use = use_of(places->front().node)) ++use->sole_copies;
    }
  }
  for (auto& [id, use] : nodes) demand.nodes.push_back(std::move(use));
  return demand;
}

void Head::on(const Call&, control::QueryDemand&, ControlAnswerer answer) { answer(ControlAnswer{demand()}); }

void Head::on(const Call&, control::RetireNode& body, ControlAnswerer answer) {
  const Demand current = demand();
  auto use = std::find_if(current.nodes.begin(), current.nodes.end(), [&](const NodeUse& node) { return node.info.node == body.node; });
  if (use == current.nodes.end()) return answer(not_found("no node has the id " + body.node.hex()));
  const std::string name = "node " + body.node.short_hex() + " (" + use->info.address + ")";
  if (use->info.is_head) return answer(invalid_argument(name + " is the one beside the head, which ends with the cluster only"));
  if (use->is_leaving()) return answer(ControlAnswer{});
  if (!use->is_idle()) return answer(resource_exhausted(name + " is not idle: " + use->describe()));
  LOG(info, "{} takes no new work: it is idle and to be removed", name);
  scheduler_->remove_node(body.node);
  NodeInfo info = tables_.nodes().at(body.node);
  info.labels[std::string(kLeavingLabel)] = "idle";
  commit(command::AddNode{std::move(info)});
  tell_node_watchers();
  answer(ControlAnswer{});
}

}  // namespace runtime
