#include "runtime/head/actor_queue.h"

#include <algorithm>
#include <utility>

namespace runtime {

namespace {

// Thousands that wait for the same have one reason, which changes with every release.
constexpr auto kRefreshTogether = std::chrono::milliseconds(50);

}  // namespace

void ActorQueue::add(ActorId actor, Deadline deadline, Deadline not_before) {
  ActorShape shape = shape_of(context_.tables.actors().find(actor)->spec);
  const std::size_t number = shapes_.try_emplace(std::move(shape), shapes_.size()).first->second;
  pending_.push_back({actor, deadline, not_before, number});
}

void ActorQueue::remove(ActorId actor) {
  std::erase_if(pending_, [&](const Pending& pending) { return pending.actor == actor; });
}

void ActorQueue::extend(ActorId actor, Deadline deadline) {
  for (Pending& pending : pending_) {
    if (pending.actor == actor) pending.deadline = std::max(pending.deadline, deadline);
  }
}

void ActorQueue::place_all(const Place& place) {
  std::vector<Pending> actors = std::exchange(pending_, {});
  without_room_.clear();
  const Deadline now = context_.now();
  for (const Pending& pending : actors) {
    // Those like one that has no room have none either: within one look at all of them, there is
    // only less.
    const bool like_another = without_room_.contains(pending.shape);
    if (pending.not_before <= now && !like_another) {
      if (place(pending.actor, pending.deadline)) continue;
      without_room_.emplace(pending.shape, pending.actor);
    } else if (like_another) {
      refresh_at_ = std::min(refresh_at_, now + kRefreshTogether);
    }
    pending_.push_back(pending);
  }
  if (pending_.empty()) shapes_.clear();
}

bool ActorQueue::end_pauses(Deadline now) {
  bool any = false;
  for (Pending& pending : pending_) {
    if (pending.not_before == Deadline::min() || pending.not_before > now) continue;
    pending.not_before = Deadline::min();
    any = true;
  }
  return any;
}

std::optional<ActorId> ActorQueue::find_late(Deadline now) const {
  for (const Pending& pending : pending_) {
    if (pending.deadline <= now) return pending.actor;
  }
  return std::nullopt;
}

Deadline ActorQueue::earliest() const {
  Deadline earliest = Deadline::max();
  for (const Pending& pending : pending_) {
    earliest = std::min(earliest, pending.deadline);
    if (pending.not_before != Deadline::min()) earliest = std::min(earliest, pending.not_before);
  }
  return earliest;
}

std::vector<ActorId> ActorQueue::actors() const {
  std::vector<ActorId> actors;
  actors.reserve(pending_.size());
  for (const Pending& pending : pending_) actors.push_back(pending.actor);
  return actors;
}

void ActorQueue::tick(Deadline now) {
  if (refresh_at_ <= now) refresh_reasons();
}

void ActorQueue::refresh_reasons() {
  refresh_at_ = Deadline::max();
  for (const Pending& pending : pending_) {
    auto like = without_room_.find(pending.shape);
    const ActorRecord* other =
        like == without_room_.end() ? nullptr : context_.tables.actors().find(like->second);
    if (other && other->phase == ActorPhase::kPending && pending.actor != like->second)
      context_.commit(command::ActorWaits{pending.actor, other->pending_reason});
  }
}

}  // namespace runtime
