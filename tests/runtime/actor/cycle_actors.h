// Actors for the tests of calls that wait for each other.
#pragma once

#include <chrono>

#include "runtime/runtime.h"
#include "tests/support/pauses.h"

namespace runtime::test {

class Link;
class Relay;

/// A task that calls it, and waits.
Result<int> pass_of(const ActorHandle<Link>& link);
/// Where tasks of this process find the runtime.
inline Runtime* passing_runtime = nullptr;

/// Calls the next in a chain, and waits for it.
class Link {
 public:
  explicit Link(Runtime& runtime) : runtime_(runtime) {}
  void follow(ActorHandle<Link> next) { next_ = std::move(next); }
  /// How many calls it took, after `rest_ms` here. The last one is at the end of `depth` others.
  Result<int> pass(int depth, int rest_ms) {
    support::work_for(std::chrono::milliseconds(rest_ms));
    if (depth == 0) return 0;
    return one_more(runtime_.get(next_.call(&Link::pass, depth - 1, rest_ms)));
  }
  /// The same of several at once.
  Result<int> pass_twice() {
    return one_more(runtime_.objects().gather(
        std::vector{next_.call(&Link::pass, 1, 0), next_.call(&Link::pass, 1, 0)}));
  }
  /// The same by an object that waits for several.
  Result<int> pass_together() {
    const auto first = next_.call(&Link::pass, 1, 0), second = next_.call(&Link::pass, 1, 0);
    const Status both = runtime_.get(runtime_.objects().when_all(first, second));
    return both.ok() ? one_more(runtime_.get(first)) : Result<int>(both);
  }
  /// By a task that waits for the call.
  Result<int> pass_by_task() {
    return one_more(runtime_.get(runtime_.task(TaskOptions{.cpus = 0.1}, &pass_of, next_)));
  }
  /// By an actor whose constructor waits for a call to the next one.
  Result<int> pass_by_constructor(int create_ms);
  /// By a coroutine that awaits a call to the next one, or blocks for it.
  Result<int> pass_by_coroutine(ActorHandle<Relay> relay, int limit_ms);
  Result<int> pass_by_blocked(ActorHandle<Relay> relay);
  /// With its own limits of time, where they are not 0.
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

inline Result<int> pass_of(const ActorHandle<Link>& link) {
  return passing_runtime->get(link.call(&Link::pass, 1, 0));
}

/// Waits for a call while it is made.
class Dependent {
 public:
  Dependent(Runtime& runtime, const ActorHandle<Link>& link)
      : sum_(runtime.get(link.call(&Link::pass, 1, 0)).value_or(-1)) {}
  int sum() const { return sum_; }

 private:
  int sum_;
};

void register_cycle_actors(Runtime& rt);

}  // namespace runtime::test
