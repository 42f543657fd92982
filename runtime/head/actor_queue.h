// ActorQueue: the actors that wait for a place, in order of arrival.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "runtime/head/actor_rules.h"
#include "runtime/head/head_context.h"

namespace runtime {

class ActorQueue {
 public:
  /// False while the actor has to wait.
  using Place = std::function<bool(ActorId, Deadline)>;

  explicit ActorQueue(const HeadContext& context) : context_(context) {}

  /// `not_before`: of a restart that is held back.
  void add(ActorId actor, Deadline deadline, Deadline not_before = Deadline::min());
  void remove(ActorId actor);
  void extend(ActorId actor, Deadline deadline);
  /// A look at all: what `place` finds a place for leaves the queue.
  void place_all(const Place& place);
  /// Lets those look again whose pause is over; whether there were any.
  bool end_pauses(Deadline now);
  /// The first whose deadline has passed.
  std::optional<ActorId> find_late(Deadline now) const;
  /// The earliest deadline or end of a pause.
  Deadline earliest() const;

  std::size_t size() const { return pending_.size(); }
  std::vector<ActorId> actors() const;

  void tick(Deadline now);
  Deadline next_tick() const { return refresh_at_; }

 private:
  struct Pending {
    ActorId actor;
    Deadline deadline;
    Deadline not_before;
    std::size_t shape;  // equal for those that ask for the same
  };
  /// Renews the reasons of actors that place_all() left out, since others like them had no room.
  void refresh_reasons();

  const HeadContext& context_;
  std::vector<Pending> pending_;
  std::map<ActorShape, std::size_t> shapes_;     // of those
  std::map<std::size_t, ActorId> without_room_;  // by shape: one that has the reason of all
  Deadline refresh_at_ = Deadline::max();        // of the others' reasons
};

}  // namespace runtime
