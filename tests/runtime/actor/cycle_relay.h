// Relay: an actor of coroutines, for the tests of calls that wait for each other.
#pragma once

#include "cycle_actors.h"
#include "runtime/coroutine.h"

namespace runtime::test {

/// Awaits calls to the link that it is given.
class Relay {
 public:
  explicit Relay(Runtime& runtime) : runtime_(runtime) {}

  /// `limit_ms` other than 0: it awaits no longer than that.
  asio::awaitable<Result<int>> forward(ActorHandle<Link> link, int limit_ms) {
    ObjectRef<int> passed = link.call(&Link::pass, 0, 0);
    const Until until = limit_ms > 0 ? Until(std::chrono::milliseconds(limit_ms)) : Until();
    Result<int> value = co_await runtime_.async_get(passed, until);
    co_return value;
  }
  /// -1 where a timer ends first.
  asio::awaitable<Result<int>> forward_first(ActorHandle<Link> link, int ms) {
    using namespace asio::experimental::awaitable_operators;
    ObjectRef<int> passed = link.call(&Link::pass, 1, 0);
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, std::chrono::milliseconds(ms));
    auto either = runtime_.async_get(passed) || timer.async_wait(asio::use_awaitable);
    auto first = co_await std::move(either);
    Result<int> value = first.index() == 0 ? std::get<0>(first) : Result<int>(-1);
    co_return value;
  }
  /// Blocks its actor, as no coroutine should.
  asio::awaitable<Result<int>> forward_blocked(ActorHandle<Link> link) {
    Result<int> value = runtime_.get(link.call(&Link::pass, 0, 0));
    co_return value;
  }
  asio::awaitable<Result<int>> forward_to_itself(ActorHandle<Relay> self) {
    ObjectRef<int> idle = self.call(&Relay::idle);
    Result<int> value = co_await runtime_.async_get(idle);
    co_return value;
  }
  asio::awaitable<int> idle() { co_return 0; }

 private:
  Runtime& runtime_;
};

}  // namespace runtime::test
