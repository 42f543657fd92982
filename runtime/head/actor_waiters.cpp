#include "runtime/head/actor_waiters.h"

#include <algorithm>
#include <string>
#include <utility>

namespace runtime {

void ActorWaiters::add_for_address(ActorId actor, Deadline deadline, ControlAnswerer answer) {
  const ActorRecord& record = *context_.tables.actors().find(actor);
  switch (record.phase) {
    case ActorPhase::kAlive: return answer(ControlAnswer{record.address});
    case ActorPhase::kDead: return answer(death_status(record.state()));
    default: return for_address_.add(actor, deadline, std::move(answer));
  }
}

void ActorWaiters::add_for_end(ActorId actor, Deadline deadline, EndAnswerer answer) {
  for_end_.add(actor, deadline, std::move(answer));
}

void ActorWaiters::add_for_change(ActorId actor, Deadline deadline, ControlAnswerer answer) {
  for_change_.add(actor, deadline, std::move(answer));
}

void ActorWaiters::alive(const ActorAddress& address) {
  for (ControlAnswerer& answer : for_address_.take(address.actor)) answer(ControlAnswer{address});
}

void ActorWaiters::never_alive(ActorId actor, const Status& why) {
  for (ControlAnswerer& answer : for_address_.take(actor)) answer(why);
}

void ActorWaiters::incarnation_ended(const ActorRecord& record) {
  for (EndAnswerer& answer : for_end_.take(record.spec.actor)) answer(&record);
}

void ActorWaiters::changed(ActorId actor) {
  for (ControlAnswerer& answer : for_change_.take(actor))
    answer(ControlAnswer{context_.tables.actors().find(actor)->state()});
}

void ActorWaiters::tick(Deadline now) {
  for (auto& [actor, answer] : for_address_.expire(now)) {
    const ActorRecord* record = context_.tables.actors().find(actor);
    const std::string phase = record ? std::string(to_string(record->phase)) : "gone";
    answer(deadline_exceeded(
        "actor " + actor.short_hex() + " is still " + phase +
        (record && !record->pending_reason.empty() ? ": " + record->pending_reason : "")));
  }
  for (auto& [actor, answer] : for_end_.expire(now)) answer(nullptr);
  for (auto& [actor, answer] : for_change_.expire(now))
    answer(deadline_exceeded("nothing has happened to actor " + actor.short_hex()));
}

Deadline ActorWaiters::next_tick() const {
  return std::min({for_address_.earliest(), for_end_.earliest(), for_change_.earliest()});
}

}  // namespace runtime
