// GroupTable: the placement groups. Part of ClusterTables.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/control/membership.h"
#include "runtime/head/head_commands.h"
#include "runtime/head/journal_entries.h"
#include "runtime/head/table_changes.h"

namespace runtime {

/// Plain data with one way to change it (cluster_tables.h).
class GroupTable {
 public:
  void apply(const command::AddGroup& c);
  void apply(const command::GroupWaits& c);
  void apply(const command::GroupPlaced& c);
  void apply(const command::GroupTorn& c);
  void apply(const command::RemoveGroup& c);

  /// Null: there is none.
  const GroupState* find(GroupId id) const;
  const GroupState* named(const std::string& name_space, const std::string& name) const;
  const std::map<GroupId, GroupState>& all() const { return groups_; }
  /// The placed groups with a bundle there.
  const std::set<GroupId>& placed_on(NodeId node) const;

  void follow() { changed_.follow(); }
  void take_changes(std::vector<JournalWrite>& writes);
  Status restore(const journal::Group& entry);
  /// Errors: kInvalidArgument (two of one name; a bundle without a node).
  Status end_restore();

 private:
  void leave_nodes(const GroupState& group);

  std::map<GroupId, GroupState> groups_;
  std::map<std::pair<std::string, std::string>, GroupId> names_;  // by namespace and name
  std::map<NodeId, std::set<GroupId>> placed_on_;
  TableChanges<GroupId> changed_;
};

}  // namespace runtime
