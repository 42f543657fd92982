// Hooks of a class of actors for its state, so that a restart begins where the last life saved it:
//
//   class Trainer {
//     ...
//     Progress save_state() const { return progress_; }  // or Result<Progress>
//     // After the constructor, in a restart; or Status. Any type that a method may return.
//     void restore_state(Progress saved) { progress_ = std::move(saved); }
//   };
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/call/actor_scope.h"
#include "runtime/call/fwd.h"
#include "runtime/call/invoke.h"
#include "runtime/codec/codec.h"
#include "runtime/core/check.h"
#include "runtime/core/result.h"

namespace runtime {

/// Keeps the states of actors for their next starts. Any thread.
class StateKeeper {
 public:
  /// All of the state or, on any error, none of it. Blocks. Errors: as
  /// ActorDirectory::save_state.
  virtual Status keep_state(ActorInstance actor, std::string state, Deadline deadline) = 0;

 protected:
  ~StateKeeper() = default;
};

/// Of a class that has both; null of all others.
struct StateHooks {
  Status (*save)(const void* actor, InvokeOutput& output) = nullptr;
  Status (*restore)(void* actor, Decoder& saved) = nullptr;

  explicit operator bool() const { return save != nullptr; }
};

/// `save_state() const` and `restore_state(the same type)`.
template <class T>
concept SavesState = requires(const T& actor) {
  actor.save_state();
};

namespace state_detail {

template <class T>
using Saved = typename method_detail::Unwrapped<
    std::decay_t<decltype(std::declval<const T&>().save_state())>>::type;

template <class T>
Status save(const void* actor, InvokeOutput& output) {
  const T& self = *static_cast<const T*>(actor);
  using Returned = std::decay_t<decltype(self.save_state())>;
  if constexpr (std::is_same_v<Returned, Saved<T>>) {
    keep_result(output, self.save_state());
  } else {
    Returned state = self.save_state();
    if (!state.ok()) return state.status();
    keep_result(output, *std::move(state));
  }
  return {};
}

template <class T>
Status restore(void* actor, Decoder& saved) {
  static_assert(
      requires(T & self) { self.restore_state(std::declval<Saved<T>>()); },
      "a class with save_state() needs restore_state(), which takes what save_state() returns");
  T& self = *static_cast<T*>(actor);
  Result<Saved<T>> state = decode_all<Saved<T>>(saved);
  if (!state.ok()) return state.status();
  if constexpr (std::is_same_v<decltype(self.restore_state(*std::move(state))), Status>) {
    return self.restore_state(*std::move(state));
  } else {
    self.restore_state(*std::move(state));
    return {};
  }
}

}  // namespace state_detail

template <class T>
StateHooks state_hooks() {
  if constexpr (SavesState<T>)
    return {&state_detail::save<T>, &state_detail::restore<T>};
  else
    return {};
}

/// The call by which a driver asks an actor to save its state; every class with the hooks has it as
/// a method.
MethodKey save_state_key();

/// Encodes the state and hands it to the head, which keeps it for the actor's next start: all of it
/// or, on any error, none. Blocks. `actor` is the object of `self`. Errors: kInvalidArgument
/// (the class has no hooks; the state holds ObjectRefs), kResourceExhausted (over
/// kActorStateBytesMax). kCancelled: the actor has been replaced meanwhile. kDeadlineExceeded or
/// kUnavailable: no head.
Status save_state_of(const void* actor, const StateHooks& hooks, ActorInstance self,
                     StateKeeper& keeper, Deadline deadline);
/// `context`: of the handles in the state.
Status restore_state_of(void* actor, const StateHooks& hooks, const std::string& saved,
                        const ObjectContextPtr& context);

template <SavesState T>
Status invoke_save_state(Invocation& call) {
  CHECK(call.states != nullptr);
  return save_state_of(call.actor, state_hooks<T>(), ActorScope::current(), *call.states,
                       call.context.deadline());
}

}  // namespace runtime
