// Hooks of a class of actors whose node is about to leave the cluster (docs/guide/spot.md):
//
//   class Trainer {
//     ...
//     void on_drain(const DrainNotice& notice);  // runs between two calls, before save_state()
//   };
#pragma once

#include <string>

#include "runtime/core/clock.h"

namespace runtime {

/// This process's node is about to leave the cluster.
struct DrainNotice {
  std::string reason;  // as it was given: "preemption"
  Deadline deadline;   // it is gone then

  bool operator==(const DrainNotice&) const = default;
};

template <class T>
concept HearsOfDrains = requires(T& actor, const DrainNotice& notice) {
  actor.on_drain(notice);
};

/// Null of a class without on_drain().
using DrainHook = void (*)(void* actor, const DrainNotice& notice);

template <class T>
DrainHook drain_hook() {
  if constexpr (HearsOfDrains<T>)
    return [](void* actor, const DrainNotice& notice) { static_cast<T*>(actor)->on_drain(notice); };
  else
    return nullptr;
}

}  // namespace runtime
