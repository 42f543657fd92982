// ScopedActor<T>: an actor that ends with a scope.
#pragma once

#include <utility>

#include "runtime/call/actor_handle.h"
#include "runtime/transport/unique_function.h"

namespace runtime {

/// Made by Runtime::spawn_scoped, which must outlive it. Its destructor terminates the actor: the
/// calls that wait are run, and it blocks until the actor is gone, at most half a minute.
template <class T>
class ScopedActor {
 public:
  ScopedActor(ActorHandle<T> handle, UniqueFunction<void()> end)
      : handle_(std::move(handle)), end_(std::move(end)) {}
  ScopedActor(ScopedActor&& other) noexcept
      : handle_(std::exchange(other.handle_, {})), end_(std::exchange(other.end_, {})) {}
  ScopedActor& operator=(ScopedActor&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, {});
      end_ = std::exchange(other.end_, {});
    }
    return *this;
  }
  ~ScopedActor() { finish(); }

  const ActorHandle<T>& handle() const { return handle_; }
  const ActorHandle<T>* operator->() const { return &handle_; }
  const ActorHandle<T>& operator*() const { return handle_; }

  /// Leaves the actor to its owner.
  ActorHandle<T> release() {
    end_ = {};
    return std::exchange(handle_, {});
  }

 private:
  void finish() {
    if (end_) std::exchange(end_, {})();
  }

  ActorHandle<T> handle_;
  UniqueFunction<void()> end_;
};

}  // namespace runtime
