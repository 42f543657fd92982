#include "runtime/head/group_table.h"

#include "runtime/core/check.h"
#include "runtime/head/table_lookup.h"

namespace runtime {

using table_lookup::lookup;

void GroupTable::apply(const command::AddGroup& c) {
  CHECK(!groups_.contains(c.spec.group));
  GroupState& group = groups_[c.spec.group];
  group.spec = c.spec;
  group.job = c.job;
  if (!c.spec.name.empty()) {
    const bool added =
        names_.emplace(std::pair(c.spec.name_space, c.spec.name), c.spec.group).second;
    CHECK(added);
  }
  changed_.note(c.spec.group);
}

void GroupTable::apply(const command::GroupWaits& c) {
  groups_.at(c.group).pending_reason = c.reason;
}

void GroupTable::apply(const command::GroupPlaced& c) {
  GroupState& group = groups_.at(c.group);
  leave_nodes(group);
  group.placed = true;
  group.pending_reason.clear();
  group.nodes = c.place.nodes;
  group.gpus = c.place.gpus;
  ++group.placements;
  for (const NodeId& node : group.nodes) placed_on_[node].insert(c.group);
  changed_.note(c.group);
}

void GroupTable::apply(const command::GroupTorn& c) {
  GroupState& group = groups_.at(c.group);
  leave_nodes(group);
  group.placed = false;
  group.pending_reason = c.reason;
  group.nodes.clear();
  group.gpus.clear();
  changed_.note(c.group);
}

void GroupTable::apply(const command::RemoveGroup& c) {
  const GroupState& group = groups_.at(c.group);
  leave_nodes(group);
  if (!group.spec.name.empty()) names_.erase(std::pair(group.spec.name_space, group.spec.name));
  groups_.erase(c.group);
  changed_.note(c.group);
}

void GroupTable::leave_nodes(const GroupState& group) {
  for (const NodeId& node : group.nodes)
    table_lookup::remove_from(placed_on_, node, group.spec.group);
}

const GroupState* GroupTable::find(GroupId id) const { return lookup(groups_, id); }

const GroupState* GroupTable::named(const std::string& name_space, const std::string& name) const {
  const GroupId* id = lookup(names_, std::pair(name_space, name));
  return id ? find(*id) : nullptr;
}

const std::set<GroupId>& GroupTable::placed_on(NodeId node) const {
  return table_lookup::set_of(placed_on_, node);
}

// -- The journal

void GroupTable::take_changes(std::vector<JournalWrite>& writes) {
  changed_.take(writes, [this](GroupId id) -> JournalWrite {
    const GroupState* state = find(id);
    if (!state) return {journal::key_of(id), {}};
    return {journal::key_of(id), journal::encode(journal::Group{*state})};
  });
}

Status GroupTable::restore(const journal::Group& entry) {
  groups_[entry.state.spec.group] = entry.state;
  return {};
}

Status GroupTable::end_restore() {
  for (const auto& [id, group] : groups_) {
    const GroupSpec& spec = group.spec;
    if (!spec.name.empty() && !names_.emplace(std::pair(spec.name_space, spec.name), id).second) {
      return invalid_argument("two placement groups are named '" + spec.name + "' in namespace '" +
                              spec.name_space + "'");
    }
    if (!group.placed) continue;
    if (group.nodes.size() != spec.bundles.size())
      return invalid_argument("placement group " + id.hex() + " has a bundle without a node");
    for (const NodeId& node : group.nodes) placed_on_[node].insert(id);
  }
  return {};
}

}  // namespace runtime
