// Lifetime: callbacks that may outlive their object.
#pragma once

#include <memory>
#include <utility>

namespace runtime {

/// A member of the object that its callbacks belong to, best the last one: it ends first. Not
/// thread-safe: the object ends on the thread that runs its callbacks.
class Lifetime {
 public:
  Lifetime() = default;
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() { end(); }

  /// From now on guarded callbacks do nothing.
  void end() { *alive_ = false; }
  /// Runs `callback` unless this has ended by then. Its result is void.
  template <class Callback>
  auto guard(Callback callback) const {
    return [alive = alive_, callback = std::move(callback)](auto&&... arguments) mutable {
      if (*alive) callback(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// For a callback that has something to do in either case: false once this has ended.
  std::shared_ptr<const bool> alive() const { return alive_; }

 private:
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace runtime
