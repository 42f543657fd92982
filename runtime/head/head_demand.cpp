// The head's part for whoever adds and removes nodes: what waits, and what is idle.
#include <algorithm>
#include <map>

#include "runtime/head/head.h"
#include "runtime/head/head_words.h"

namespace runtime {

using namespace head_words;

namespace {

/// What pending things have in common, each shape once.
class Shapes {
 public:
  explicit Shapes(Demand& demand) : demand_(demand) {}

  void add(const ActorSpec& actor) {
    add_place(actors_, demand_.actors, actor.resources, actor.labels,
              [&] { return describe(actor); });
  }

  /// One that waits for what it reserves.
  void add(const JobInfo& job, const GroupSpec& place) {
    const Labels labels = place.bundle_labels.empty() ? Labels() : place.bundle_labels.front();
    add_place(jobs_, demand_.jobs, place.bundles.front(), labels,
              [&] { return "job " + job.job.short_hex(); });
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
    if (shapes_.size() >= Demand::kShapesMax ||
        bundles_ + group.bundles.size() > Demand::kBundlesMax) {
      ++demand_.unlisted;
      return;
    }
    bundles_ += group.bundles.size();
    last_ = shapes_.size();
    shapes_.push_back(std::move(shape));
    demand_.groups.push_back({group, 1});
  }

 private:
  using Known = std::map<std::pair<ResourceMap, Labels>, std::size_t>;  // where each is in its list

  template <class Describe>
  void add_place(Known& known, std::vector<PlaceShape>& list, const ResourceMap& resources,
                 const Labels& labels, Describe description) {
    auto [at, is_new] = known.try_emplace({resources, labels}, list.size());
    if (!is_new) {
      ++list[at->second].count;
      return;
    }
    if (list.size() >= Demand::kShapesMax) {
      known.erase(at);
      ++demand_.unlisted;
      return;
    }
    list.push_back({resources, labels, 1, description()});
  }

  Demand& demand_;
  Known actors_, jobs_;
  std::vector<GroupSpec> shapes_;  // of demand_.groups
  std::size_t bundles_ = 0;
  std::size_t last_ = 0;  // that a group was like
};

}  // namespace

Demand Head::demand() const {
  Demand demand;
  Shapes shapes(demand);
  std::map<NodeId, NodeUse> uses = node_uses();
  // What a group gives back before it is placed anew is room for it.
  const auto give_back = [&](NodeId node, const ResourceMap& amounts) {
    if (drains_.contains(node) || !uses.contains(node)) return;
    for (const auto& [name, amount] : amounts) uses[node].info.available[name] += amount;
  };
  for (const auto& [number, pending] : pending_groups_) {
    const GroupState* group = tables_.group(pending.group);
    if (!group || preparations_.contains(pending.group)) continue;  // it has its place already
    if (const JobRecord* job = job_in(*group)) {
      shapes.add(job->info, group->spec);
      continue;
    }
    shapes.add(group->spec);
    for (ActorId member : tables_.members(pending.group)) {
      const ActorRecord& record = *tables_.actor(member);
      if (is_started(record.phase)) give_back(record.node, record.spec.resources);
    }
  }
  const auto add = [&](const ActorSpec& actor) {
    if (actor.bundle || (actor.node && !actor.node_is_preferred))
      ++demand.bound;
    else
      shapes.add(actor);
  };
  for (const PendingActor& pending : pending_actors_) {
    const ActorRecord* record = tables_.actor(pending.actor);
    if (!record) continue;
    const GroupState* group =
        record->spec.bundle ? tables_.group(record->spec.bundle->group) : nullptr;
    if (group && !group->placed) continue;  // it is the group that waits
    add(record->spec);
  }
  for (const auto& [node, drain] : drains_) {
    // What is to move off it, and finds no room.
    for (const ActorId& actor : tables_.started_on(node)) {
      const ActorRecord& record = *tables_.actor(actor);
      if (record.phase == ActorPhase::kAlive && !record.moving && !record.spec.bundle &&
          may_move(record))
        add(record.spec);
    }
  }
  for (GroupId id : stranded_groups()) {
    const GroupState& group = *tables_.group(id);
    shapes.add(group.spec);
    for (std::size_t b = 0; b < group.nodes.size(); ++b)
      give_back(group.nodes[b], group.spec.bundles[b]);
  }
  for (auto& [id, use] : uses) demand.nodes.push_back(std::move(use));
  return demand;
}

std::set<GroupId> Head::stranded_groups() const {
  std::set<GroupId> stranded;
  for (const auto& [node, drain] : drains_) {
    for (const auto& [id, why] : drain.gangs_stay) {
      const GroupState* group = tables_.group(id);
      if (group && group->placed && check_group_move(id).code() == ErrorCode::kResourceExhausted)
        stranded.insert(id);
    }
  }
  return stranded;
}

std::map<NodeId, NodeUse> Head::node_uses() const {
  std::map<NodeId, NodeUse> nodes;
  for (const auto& [id, info] : tables_.nodes()) nodes[id].info = shown(info);
  const auto use_of = [&nodes](NodeId id) {
    auto found = nodes.find(id);
    return found == nodes.end() ? nullptr : &found->second;
  };
  for (const auto& [id, record] : tables_.actors()) {
    NodeUse* use = use_of(record.node);
    if (!use) continue;
    use->last_placed = std::max(use->last_placed, record.incarnation);
    if (is_started(record.phase)) ++use->actors;
  }
  for (const auto& [node, drain] : drains_) {
    for (const auto& [id, to] : drain.moves_to) {
      const ActorRecord* record = tables_.actor(id);
      NodeUse* use = record && record->moving && record->node == node && is_started(record->phase)
                         ? use_of(to)
                         : nullptr;
      if (use) ++use->actors;
    }
  }
  const auto add_bundles = [&](const std::vector<NodeId>& places) {
    for (NodeId node : places) {
      if (NodeUse* use = use_of(node)) ++use->bundles;
    }
  };
  for (const auto& [id, group] : tables_.groups()) {
    if (group.placed) add_bundles(group.nodes);
  }
  for (const auto& [id, preparation] : preparations_) add_bundles(preparation.place.nodes);
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
  return nodes;
}

void Head::on(const Call&, control::QueryDemand&, ControlAnswerer answer) {
  answer(ControlAnswer{demand()});
}

}  // namespace runtime
