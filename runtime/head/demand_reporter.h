// DemandReporter: the work that waits for a place, and the use of the nodes; for programs that add
// and remove nodes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "runtime/control/control.h"
#include "runtime/control/demand.h"
#include "runtime/head/head_context.h"
#include "runtime/head/work_mover.h"

namespace runtime {

class DemandReporter {
 public:
  /// What the tables do not say.
  struct Sources {
    std::function<std::vector<ActorId>()> pending_actors;
    std::function<std::vector<GroupId>()> pending_groups;
    std::function<bool(GroupId)> is_under_way;  // it has a place, and its nodes are being asked
    std::function<std::vector<std::vector<NodeId>>()> places_under_way;  // of those, by bundle
    std::function<std::vector<WorkMover::KeptPlace>()> kept_places;
    std::function<std::set<GroupId>()> stranded_groups;
    std::function<NodeInfo(const NodeInfo&)> shown;  // with what changes by itself
  };

  DemandReporter(const HeadContext& context, Sources sources)
      : context_(context), sources_(std::move(sources)) {}

  void serve(const HeadCall& call, control::QueryDemand& body, ControlAnswerer answer);

  Demand demand() const;
  std::map<NodeId, NodeUse> node_uses() const;

 private:
  /// How a demand is put together.
  struct Draft;
  void add_pending_groups(Draft& draft) const;
  void add_pending_actors(Draft& draft) const;
  /// What is to move off nodes that are drained, and finds no room.
  void add_unmovable(Draft& draft) const;
  void count_work(std::map<NodeId, NodeUse>& uses) const;
  void count_bundles(std::map<NodeId, NodeUse>& uses) const;
  void count_copies(std::map<NodeId, NodeUse>& uses) const;

  const HeadContext& context_;
  const Sources sources_;
};

}  // namespace runtime
