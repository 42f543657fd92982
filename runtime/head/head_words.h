// Descriptions and limits that the parts of the head share.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "runtime/control/membership.h"
#include "runtime/transport/event_loop.h"

namespace runtime::head_words {

// A caller that waits gets the reason for the failure at its deadline if the head waits a little
// longer.
inline constexpr auto kAnswerGrace = std::chrono::milliseconds(250);
// How long the process of an actor whose owner has ended may take.
inline constexpr auto kEndGrace = std::chrono::milliseconds(1000);

inline std::chrono::milliseconds time_left(Deadline now, Deadline deadline) {
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now));
}

/// As time_left(), but nothing is left at the deadline.
inline std::chrono::milliseconds until(Deadline now, Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(deadline - now));
}

inline std::string describe(const ActorSpec& spec) {
  return "actor " + spec.class_name + " " + spec.actor.short_hex();
}
inline std::string describe(const GroupSpec& spec) {
  return "placement group " + (spec.name.empty() ? spec.group.short_hex() : "'" + spec.name + "'");
}

/// Whether an actor of this phase has a process, or is about to.
inline bool is_started(ActorPhase phase) {
  return phase == ActorPhase::kStarting || phase == ActorPhase::kAlive;
}

}  // namespace runtime::head_words
