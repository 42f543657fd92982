// A check that the indexes of the head's tables, which save a look through all records, agree with
// such a look.
#pragma once

#include <map>
#include <set>
#include <string>

#include "runtime/head/cluster_tables.h"

namespace support {

/// What is wrong; empty: nothing is.
inline std::string index_errors(const runtime::ClusterTables& tables) {
  using namespace runtime;
  std::map<NodeId, std::set<ActorId>> started;
  std::map<NodeId, std::set<GroupId>> placed;
  std::set<NodeId> nodes;  // also those that have gone: nothing may be left there
  for (const auto& [id, info] : tables.nodes().all()) nodes.insert(id);
  for (const NodeDeparture& departure : tables.nodes().departures())
    nodes.insert(departure.node.node);
  for (const auto& [id, record] : tables.actors().all()) {
    nodes.insert(record.node);
    if (record.phase == ActorPhase::kStarting || record.phase == ActorPhase::kAlive)
      started[record.node].insert(id);
  }
  for (const auto& [id, group] : tables.groups().all()) {
    nodes.insert(group.nodes.begin(), group.nodes.end());
    if (!group.placed) continue;
    for (const NodeId& node : group.nodes) placed[node].insert(id);
  }
  for (const NodeId& node : nodes) {
    const std::string there =
        " on node " + node.short_hex() + " are not those of which that is recorded";
    if (tables.actors().started_on(node) != started[node]) return "the actors" + there;
    if (tables.groups().placed_on(node) != placed[node]) return "the placement groups" + there;
  }
  return "";
}

}  // namespace support
