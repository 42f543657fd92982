#include "runtime/head/demand_reporter.h"

#include <algorithm>
#include <utility>

#include "runtime/head/actor_rules.h"
#include "runtime/head/demand_shapes.h"
#include "runtime/head/head_words.h"
#include "runtime/head/job_place.h"

namespace runtime {

using namespace head_words;

namespace {

/// Null: the node has gone.
NodeUse* use_of(std::map<NodeId, NodeUse>& uses, NodeId node) {
  auto found = uses.find(node);
  return found == uses.end() ? nullptr : &found->second;
}

}  // namespace

struct DemandReporter::Draft {
  Demand demand;
  DemandShapes shapes{demand};
  std::map<NodeId, NodeUse> uses;

  void add(const ActorSpec& actor) {
    if (actor.bundle || (actor.node && !actor.node_is_preferred))
      ++demand.bound;
    else
      shapes.add(actor);
  }
  /// What a group gives back before it is placed again is room for it.
  void give_back(NodeId node, const ResourceMap& amounts) {
    NodeUse* use = use_of(uses, node);
    if (!use || use->is_leaving()) return;
    for (const auto& [name, amount] : amounts) use->info.available[name] += amount;
  }
};

void DemandReporter::serve(const HeadCall&, control::QueryDemand&, ControlAnswerer answer) {
  answer(ControlAnswer{demand()});
}

Demand DemandReporter::demand() const {
  Draft draft;
  draft.uses = node_uses();
  add_pending_groups(draft);
  add_pending_actors(draft);
  add_unmovable(draft);
  for (auto& [id, use] : draft.uses) draft.demand.nodes.push_back(std::move(use));
  return std::move(draft.demand);
}

void DemandReporter::add_pending_groups(Draft& draft) const {
  const ClusterTables& tables = context_.tables;
  for (GroupId id : sources_.pending_groups()) {
    const GroupState* group = tables.groups().find(id);
    if (!group || sources_.is_under_way(id)) continue;
    if (const JobRecord* job = job_in(tables, *group)) {
      draft.shapes.add(job->info, group->spec);
      continue;
    }
    draft.shapes.add(group->spec);
    for (ActorId member : tables.actors().members(id)) {
      const ActorRecord& record = *tables.actors().find(member);
      if (is_started(record.phase)) draft.give_back(record.node, record.spec.resources);
    }
  }
}

void DemandReporter::add_pending_actors(Draft& draft) const {
  const ClusterTables& tables = context_.tables;
  for (ActorId actor : sources_.pending_actors()) {
    const ActorRecord* record = tables.actors().find(actor);
    if (!record) continue;
    const GroupState* group =
        record->spec.bundle ? tables.groups().find(record->spec.bundle->group) : nullptr;
    if (group && !group->placed) continue;  // it is the group that waits
    draft.add(record->spec);
  }
}

void DemandReporter::add_unmovable(Draft& draft) const {
  const ClusterTables& tables = context_.tables;
  for (const auto& [node, use] : draft.uses) {
    if (!use.is_leaving()) continue;
    for (const ActorId& actor : tables.actors().started_on(node)) {
      const ActorRecord& record = *tables.actors().find(actor);
      if (record.phase == ActorPhase::kAlive && !record.moving && !record.spec.bundle &&
          may_move(tables, record))
        draft.add(record.spec);
    }
  }
  for (GroupId id : sources_.stranded_groups()) {
    const GroupState& group = *tables.groups().find(id);
    draft.shapes.add(group.spec);
    for (std::size_t b = 0; b < group.nodes.size(); ++b)
      draft.give_back(group.nodes[b], group.spec.bundles[b]);
  }
}

// -- What nodes are used for

std::map<NodeId, NodeUse> DemandReporter::node_uses() const {
  std::map<NodeId, NodeUse> uses;
  for (const auto& [id, info] : context_.tables.nodes().all()) uses[id].info = sources_.shown(info);
  count_work(uses);
  count_bundles(uses);
  count_copies(uses);
  return uses;
}

void DemandReporter::count_work(std::map<NodeId, NodeUse>& uses) const {
  for (const auto& [id, record] : context_.tables.actors().all()) {
    NodeUse* use = use_of(uses, record.node);
    if (!use) continue;
    use->last_placed = std::max(use->last_placed, record.incarnation);
    if (is_started(record.phase)) ++use->actors;
  }
  for (const WorkMover::KeptPlace& kept : sources_.kept_places()) {
    if (NodeUse* use = use_of(uses, kept.to)) ++use->actors;
  }
  for (const auto& [id, record] : context_.tables.jobs().all()) {
    NodeUse* use = use_of(uses, record.info.node);
    if (use && record.info.running) ++use->jobs;
  }
}

void DemandReporter::count_bundles(std::map<NodeId, NodeUse>& uses) const {
  const auto add = [&](const std::vector<NodeId>& places) {
    for (NodeId node : places) {
      if (NodeUse* use = use_of(uses, node)) ++use->bundles;
    }
  };
  for (const auto& [id, group] : context_.tables.groups().all()) {
    if (group.placed) add(group.nodes);
  }
  for (const std::vector<NodeId>& places : sources_.places_under_way()) add(places);
}

void DemandReporter::count_copies(std::map<NodeId, NodeUse>& uses) const {
  for (const auto& [name, versions] : context_.tables.published().all()) {
    for (const auto& [version, published] : versions) {
      const auto* places = std::get_if<std::vector<ObjectLocation>>(&published.value);
      if (!places || places->size() != 1) continue;
      if (NodeUse* use = use_of(uses, places->front().node)) ++use->sole_copies;
    }
  }
}

}  // namespace runtime
