// NodeTable: the members of the cluster, and those that have gone. Part of ClusterTables.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_changes.h"

namespace runtime {

/// Plain data with one way to change it (cluster_tables.h).
class NodeTable {
 public:
  // Nodes that have gone are remembered for questions about them, up to this number.
  static constexpr std::size_t kDeparturesKept = 1000;

  void apply(const command::AddNode& c);
  void apply(const command::RemoveNode& c);
  void apply(const command::NodeDrains& c);

  bool contains(NodeId id) const { return nodes_.contains(id); }
  /// Null: it is no member.
  const NodeInfo* find(NodeId id) const;
  const std::map<NodeId, NodeInfo>& all() const { return nodes_; }
  /// Nodes that have gone, oldest first.
  const std::deque<NodeDeparture>& departures() const { return departures_; }
  /// Null: it is not known to have gone.
  const NodeDeparture* departure(NodeId id) const;
  /// Grows when a node joins, begins to be drained, or leaves.
  std::uint64_t version() const { return version_; }

  void follow();
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::Node& entry);
  Status restore(const journal::Departure& entry);
  void restore_version(std::uint64_t version) { version_ = version; }
  void end_restore();

 private:
  std::map<NodeId, NodeInfo> nodes_;
  std::deque<NodeDeparture> departures_;
  std::uint64_t version_ = 1;
  TableChanges<NodeId> changed_;
  TableChanges<NodeId> changed_departures_;
};

}  // namespace runtime
