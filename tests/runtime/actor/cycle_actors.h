// Actors for the tests of calls that wait for each other.
#pragma once

#include <chrono>
#include <thread>

#include "runtime/runtime.h"

namespace runtime::test {

/// Calls the next in a chain, and waits for it.
class Link {
 public:
  explicit Link(Runtime& runtime) : runtime_(runtime) {}
  void follow(ActorHandle<Link> next) { next_ = std::move(next); }
  /// How many calls it took, after `rest_ms` here. The last one is at the end of `depth` others.
  Result<int> pass(int depth, int rest_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
    if (depth == 0) return 0;
    return one_more(runtime_.get(next_.call(&Link::pass, depth - 1, rest_ms)));
  }
  /// The same of several at once.
  Result<int> pass_twice() {
    return one_more(
        runtime_.gather(std::vector{next_.call(&Link::pass, 1, 0), next_.call(&Link::pass, 1, 0)}));
  }
  /// With limits of time of its own, where they are not 0.
  Result<int> pass_within(int call_ms, int wait_ms) {
    CallOptions options;
    if (call_ms > 0) options.timeout = std::chrono::milliseconds(call_ms);
    const auto last = next_.call(options, &Link::pass, 0, 0);
    return one_more(wait_ms > 0 ? runtime_.get(last, std::chrono::milliseconds(wait_ms))
                                : runtime_.get(last));
  }

 private:
  static Result<int> one_more(const Result<int>& calls) {
    return calls.ok() ? Result<int>(*calls + 1) : calls;
  }
  static Result<int> one_more(const Result<std::vector<int>>& calls) {
    return calls.ok() ? Result<int>(calls->front() + 1) : Result<int>(calls.status());
  }

  Runtime& runtime_;
  ActorHandle<Link> next_;
};

inline void register_cycle_actors(Runtime& rt) {
  rt.register_actor<Link>("Link", &Link::follow, &Link::pass, &Link::pass_twice,
                          &Link::pass_within);
}

}  // namespace runtime::test
