// The hooks of a PlacementQueue for one manager, without the other one.
#pragma once

#include "runtime/head/actor_manager.h"
#include "runtime/head/group_manager.h"
#include "runtime/head/placement_queue.h"

namespace runtime {

/// For a queue with actors alone. The manager may be made after the queue.
inline PlacementQueue::Hooks hooks_of(ActorManager& actors) {
  return {
      .is_under_way = [](GroupId) { return false; },
      .place_group = [](GroupId) { return false; },
      .place_actor = [&actors](ActorId actor,
                               Deadline deadline) { return actors.place(actor, deadline); },
      .looked_at_all = [] {},
      .group_late = [](GroupId) {},
      .actor_late = [&actors](ActorId actor) { actors.late(actor); },
  };
}

/// For a queue with groups alone. The manager may be made after the queue.
inline PlacementQueue::Hooks hooks_of(GroupManager& groups) {
  return {
      .is_under_way = [&groups](GroupId group) { return groups.is_under_way(group); },
      .place_group = [&groups](GroupId group) { return groups.place(group); },
      .place_actor = [](ActorId, Deadline) { return false; },
      .looked_at_all = [] {},
      .group_late = [&groups](GroupId group) { groups.late(group); },
      .actor_late = [](ActorId) {},
  };
}

}  // namespace runtime
