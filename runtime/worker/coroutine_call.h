// CoroutineCall: one call of a coroutine method, from its start to its end.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "runtime/call/blocked_calls.h"
#include "runtime/call/coroutine_state.h"
#include "runtime/core/asio.h"
#include "runtime/worker/actor_job.h"
#include "runtime/worker/actor_lanes.h"
#include "runtime/worker/coroutine_host.h"

namespace runtime {

/// What the method sees, and what its end needs. Touched on the actor's turns only.
struct CoroutineCall : CoroutineState {
  using CoroutineState::CoroutineState;

  std::shared_ptr<CoroutineHost> host;
  std::unique_ptr<ActorJob> job;
  std::uint64_t begun_ns = 0;
  bool fetches = false;  // its arguments' bytes are in flight
  Lane* lane = nullptr;
  asio::cancellation_signal signal;

  /// Tells the coroutine of its cancellation, in one of the actor's turns.
  struct OnStop {
    std::weak_ptr<CoroutineCall> call;
    void operator()() const;
  };
  std::optional<std::stop_callback<OnStop>> on_stop;
};

/// The executor of one call's coroutines. What is given to it runs in one of the actor's turns, so
/// that one thread at a time touches the actor. Fits into an any_io_executor without an allocation.
class ActorStrand {
 public:
  ActorStrand(std::shared_ptr<CoroutineHost> host, asio::execution_context& context,
              ServedCall call)
      : shared_(std::make_shared<Shared>(std::move(host), context, call)) {}

  template <class Function>
  void execute(Function function) const {
    run_in_turn([call = shared_->call, function = std::move(function)]() mutable {
      const RunningCall running(call);
      std::move(function)();
    });
  }
  const ServedCall& call() const { return shared_->call; }
  /// The slot of the call's own chain of coroutines, by which waits of others, which it started or
  /// awaits together, are told apart. On the actor's turns.
  asio::cancellation_slot& own_slot() const { return shared_->own_slot; }

  /// Timers and sockets that a coroutine makes belong to the process's loop.
  asio::execution_context& query(asio::execution::context_t) const noexcept {
    return shared_->context;
  }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  bool operator==(const ActorStrand& other) const noexcept {
    return shared_ == other.shared_;  // of another call of the actor it is another's executor
  }
  bool operator!=(const ActorStrand& other) const noexcept { return !(*this == other); }

 private:
  struct Shared {
    Shared(std::shared_ptr<CoroutineHost> its_host, asio::execution_context& its_context,
           ServedCall its_call)
        : host(std::move(its_host)), context(its_context), call(its_call) {}

    const std::shared_ptr<CoroutineHost> host;
    asio::execution_context& context;
    const ServedCall call;
    asio::cancellation_slot own_slot;
  };

  void run_in_turn(UniqueFunction<void()> task) const;

  std::shared_ptr<Shared> shared_;
};

/// Runs the coroutine in the actor's turns, once the arguments' bytes are here; at its end calls
/// host->end_coroutine(). In a turn. `served`: the call as others wait for it; what it points to
/// lives as long as the host. `context`: of what is in the call.
void start_coroutine(std::shared_ptr<CoroutineCall> call, const ServedCall& served,
                     const ObjectContextPtr& context);

}  // namespace runtime
