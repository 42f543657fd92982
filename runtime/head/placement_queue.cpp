#include "runtime/head/placement_queue.h"

#include <algorithm>

namespace runtime {

void PlacementQueue::place_all() {
  groups_.place_all(hooks_.is_under_way, hooks_.place_group);
  actors_.place_all(hooks_.place_actor);
  hooks_.looked_at_all();
}

void PlacementQueue::add(ActorId actor, Deadline deadline, Deadline not_before) {
  actors_.add(actor, deadline, not_before);
  const Deadline first = not_before == Deadline::min() ? deadline : std::min(deadline, not_before);
  earliest_ = std::min(earliest_, first);
}

void PlacementQueue::add(GroupId group, Deadline deadline) {
  groups_.add(group, deadline);
  earliest_ = std::min(earliest_, deadline);
}

void PlacementQueue::tick(Deadline now) {
  actors_.tick(now);
  if (earliest_ > now) return;
  if (actors_.end_pauses(now)) place_all();
  for (GroupId group : groups_.late(now)) {
    if (context_.tables.groups().find(group)) hooks_.group_late(group);
  }
  while (const auto actor = actors_.find_late(now)) hooks_.actor_late(*actor);
  earliest_ = std::min(actors_.earliest(), groups_.earliest());
}

}  // namespace runtime
