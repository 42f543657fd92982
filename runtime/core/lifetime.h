// Lifetime: a guard for callbacks that may outlive their object.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace runtime {

/// The last member of the object that its callbacks belong to, so that it is destroyed first. Any
/// thread may make, keep and destroy callbacks. end() does not wait for a running callback. Destroy
/// the object on the thread that runs its callbacks, or join that thread after end().
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { end(); }

  /// From now on guarded callbacks do nothing. For a destructor that lets callbacks run, or that
  /// does its work on another thread.
  void end() { *alive_ = false; }
  /// A function that runs `callback` unless end() was called by then. Its result is void.
  template <class Callback>
  auto guard(Callback callback) const {
    return [alive = alive_, callback = std::move(callback)](auto&&... arguments) mutable {
      if (*alive) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// For a callback that has something to do in either case: false once this has ended.
  std::shared_ptr<const std::atomic<bool>> alive() const { return alive_; }

 private:
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace runtime
