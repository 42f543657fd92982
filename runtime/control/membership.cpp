#include "runtime/control/membership.h"

namespace runtime {

std::string_view to_string(ActorPhase phase) {
  switch (phase) {
    case ActorPhase::kPending: return "pending";
    case ActorPhase::kStarting: return "starting";
    case ActorPhase::kAlive: return "alive";
    case ActorPhase::kDead: return "dead";
  }
  return "unknown";
}

std::string_view to_string(GroupStrategy strategy) {
  switch (strategy) {
    case GroupStrategy::kPack: return "PACK";
    case GroupStrategy::kSpread: return "SPREAD";
    case GroupStrategy::kStrictPack: return "STRICT_PACK";
    case GroupStrategy::kStrictSpread: return "STRICT_SPREAD";
  }
  return "unknown";
}

Status death_status(const ActorState& state) {
  std::string text = "actor " + state.class_name;
  if (!state.name.empty()) text += " '" + state.name + "'";
  text += " " + state.actor.short_hex();
  if (state.death.pid != 0)
    text += " (pid " + std::to_string(state.death.pid) + " on node " + state.node.short_hex() + ")";
  text += " died: " + (state.death.text.empty() ? std::string("cause unknown") : state.death.text);
  if (state.phase != ActorPhase::kDead)
    text += "; it is being restarted (restart " + std::to_string(state.restarts) + ")";
  if (!state.death.output_tail.empty()) text += "\n" + state.death.output_tail;
  return actor_died(std::move(text));
}

}  // namespace runtime
