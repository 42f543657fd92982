// WorkMover: moves actors and placement groups off nodes that are drained.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/head/actor_control.h"
#include "runtime/head/actor_rules.h"
#include "runtime/head/drained_nodes.h"
#include "runtime/head/group_control.h"
#include "runtime/head/head_context.h"

namespace runtime {

class WorkMover {
 public:
  /// The place that is kept elsewhere for an actor that is ending.
  struct KeptPlace {
    ActorId actor;
    NodeId from;
    NodeId to;
  };

  WorkMover(const HeadContext& context, const DrainedNodes& drained, ActorControl& actors,
            GroupControl& groups)
      : context_(context), drained_(drained), actors_(actors), groups_(groups) {}

  /// Whatever may go and finds a place elsewhere; the others get the reason why they stay.
  void move(NodeId node);
  /// Asks those that are in progress once more: they have less time, or were not heard.
  void ask_again(NodeId node);
  /// After a restart of the head, before others look for a place: keeps the places of those that
  /// were moving.
  void keep_places(NodeId node);
  /// What ends there from now on, and the gangs with a bundle there, use up no restart.
  void mark_moving(NodeId node);
  /// The node has left.
  void forget(NodeId node) { moves_.erase(node); }

  std::vector<KeptPlace> kept_places() const;
  /// Groups with a bundle on a node that is drained, and no room elsewhere.
  std::set<GroupId> stranded_groups() const;

 private:
  struct Moves {
    std::map<ActorId, NodeId> places;        // of actors that are ending here
    std::map<GroupId, std::string> staying;  // with a bundle here, and why they cannot move now
    std::map<GroupId, std::uint32_t> torn;   // for it, and of which placement each was
  };
  void move_groups(NodeId node);
  void move_actors(NodeId node);
  /// Why it stays; empty: it moves. `without_place`: the reasons of those that asked before.
  std::string move_actor(const ActorRecord& record,
                         std::map<ActorShape, std::string>& without_place);
  /// Whether its actors may all be started again, and there is a place for the whole of it
  /// elsewhere. Errors: why not.
  Status check_move(GroupId group) const;
  void stop(const ActorRecord& record);
  void mark_moving(const std::set<ActorId>& actors);

  const HeadContext& context_;
  const DrainedNodes& drained_;
  ActorControl& actors_;
  GroupControl& groups_;
  std::map<NodeId, Moves> moves_;
};

}  // namespace runtime
