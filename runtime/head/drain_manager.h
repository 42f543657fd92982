// DrainManager: nodes that are about to leave (docs/adr/0027-drained-nodes.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "runtime/control/control.h"
#include "runtime/control/demand.h"
#include "runtime/head/actor_control.h"
#include "runtime/head/drained_nodes.h"
#include "runtime/head/group_control.h"
#include "runtime/head/head_context.h"
#include "runtime/head/published_mover.h"
#include "runtime/head/published_objects.h"
#include "runtime/head/take_over_rounds.h"
#include "runtime/head/work_mover.h"

namespace runtime {

/// A drain is recorded before anything happens, so a head that is started again continues with it;
/// everything here may be done twice.
class DrainManager {
 public:
  struct Hooks {
    std::function<void()> nodes_changed;
    std::function<NodeUse(NodeId)> use_of;
  };

  DrainManager(const HeadContext& context, ActorControl& actors, GroupControl& groups,
               PublishedObjects& published, Hooks hooks);
  DrainManager(const DrainManager&) = delete;
  DrainManager& operator=(const DrainManager&) = delete;

  void serve(const HeadCall& call, control::DrainNode& body, ControlAnswerer answer);

  /// Does what can be done now for nodes to leave.
  void advance();
  void advance(NodeId node);
  /// After ClusterTables::restore: continues with the drains.
  void restored();
  /// A node has joined, or come back.
  void node_connected(NodeId node);
  /// Returns what there is to say of the node's end.
  std::string node_lost(NodeId node, const std::string& why);

  const DrainedNodes& nodes() const { return drained_; }
  const WorkMover& work() const { return work_; }
  std::uint64_t begun() const { return begun_; }
  /// The node's entry in lists, with what changes by itself.
  NodeInfo shown(const NodeInfo& info) const;

  void tick(Deadline) { advance(); }
  Deadline next_tick() const;

 private:
  struct Drain {
    Deadline last_call;        // before it everything is asked for once more
    bool notified = false;     // to leave
    bool emptied = false;      // nothing ran there when objects were asked for last
    bool called_last = false;  // that was done
    Deadline next_round = Deadline::min();
  };
  void begin(NodeId node, std::string reason, std::chrono::milliseconds time);
  void resume(NodeId node, std::chrono::milliseconds left);
  void tell(NodeId to, NodeId node);
  void take_over_objects(NodeId node);
  void leave(NodeId node, const std::string& how);

  const HeadContext& context_;
  GroupControl& groups_;
  const Hooks hooks_;
  DrainedNodes drained_;
  WorkMover work_;
  PublishedMover published_;
  TakeOverRounds rounds_;
  std::map<NodeId, Drain> drains_;
  std::uint64_t begun_ = 0;  // or gone on with
};

}  // namespace runtime
