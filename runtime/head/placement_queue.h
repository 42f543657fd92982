// PlacementQueue: the groups and actors that wait for a place. Placement groups come first: an
// actor placed before them could take what a whole gang waits for.
#pragma once

#include <functional>

#include "runtime/head/actor_queue.h"
#include "runtime/head/group_queue.h"
#include "runtime/head/head_context.h"

namespace runtime {

class PlacementQueue {
 public:
  struct Hooks {
    GroupQueue::IsUnderWay is_under_way;
    GroupQueue::Place place_group;
    ActorQueue::Place place_actor;
    std::function<void()> looked_at_all;  // everything that waits has had its chance
    std::function<void(GroupId)> group_late;
    std::function<void(ActorId)> actor_late;  // takes it out of the queue
  };

  PlacementQueue(const HeadContext& context, Hooks hooks)
      : context_(context), hooks_(std::move(hooks)), actors_(context), groups_(context) {}

  /// Something was released, or a node has joined: all that waits has a look.
  void place_all();

  void add(ActorId actor, Deadline deadline, Deadline not_before = Deadline::min());
  void remove(ActorId actor) { actors_.remove(actor); }
  void extend(ActorId actor, Deadline deadline) { actors_.extend(actor, deadline); }
  void add(GroupId group, Deadline deadline);
  void remove(GroupId group) { groups_.remove(group); }
  void extend(GroupId group, Deadline deadline) { groups_.extend(group, deadline); }

  const ActorQueue& actors() const { return actors_; }
  const GroupQueue& groups() const { return groups_; }

  /// Has what was held back look for a place, and fails what has waited too long.
  void tick(Deadline now);
  Deadline next_tick() const { return std::min(actors_.next_tick(), earliest_); }

 private:
  const HeadContext& context_;
  const Hooks hooks_;
  ActorQueue actors_;
  GroupQueue groups_;
  Deadline earliest_ = Deadline::max();  // never later than the first deadline or end of a pause
};

}  // namespace runtime
