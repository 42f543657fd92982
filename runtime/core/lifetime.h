// Lifetime: callbacks that may outlive their object.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace runtime {

/// A member of the object that its callbacks belong to, the last one: it ends first. Callbacks may
/// be made, kept and dropped by any thread. The end does not wait for one that runs: the object
/// ends on the thread that runs its callbacks, or joins that thread after end().
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { end(); }

  /// From now on guarded callbacks do nothing. For a destructor that lets callbacks run, or that
  /// does its work on another thread.
  void end() { *alive_ = false; }
  /// Runs `callback` unless this has ended by then. Its result is void.
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
