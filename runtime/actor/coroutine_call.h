// CoroutineCall: one call of a coroutine method, from its start to its end.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "runtime/actor/actor_job.h"
#include "runtime/actor/actor_lanes.h"
#include "runtime/actor/coroutine_state.h"
#include "runtime/core/asio.h"

namespace runtime {

class ActorHost;

/// Beside what the method sees: what its end needs. Touched on the actor's turns only.
struct CoroutineCall : CoroutineState {
  using CoroutineState::CoroutineState;

  std::shared_ptr<ActorHost> host;
  std::unique_ptr<ActorJob> job;
  std::uint64_t begun_ns = 0;
  bool fetches = false;  // its arguments' bytes are on their way
  Lane* lane = nullptr;
  asio::cancellation_signal signal;

  /// Tells the coroutine of its cancellation, in one of the actor's turns.
  struct OnStop {
    std::weak_ptr<CoroutineCall> call;
    void operator()() const;
  };
  std::optional<std::stop_callback<OnStop>> on_stop;
};

/// The executor of an actor's coroutines: what is given to it runs in one of the actor's turns, so
/// that one thread at a time touches the actor.
class ActorStrand {
 public:
  ActorStrand(std::shared_ptr<ActorHost> host, asio::execution_context& context)
      : host_(std::move(host)), context_(&context) {}

  template <class Function>
  void execute(Function function) const {
    run_in_turn([function = std::move(function)]() mutable { std::move(function)(); });
  }
  /// Timers and sockets that a coroutine makes belong to the process's loop.
  asio::execution_context& query(asio::execution::context_t) const noexcept { return *context_; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  bool operator==(const ActorStrand& other) const noexcept { return host_ == other.host_; }
  bool operator!=(const ActorStrand& other) const noexcept { return host_ != other.host_; }

 private:
  void run_in_turn(UniqueFunction<void()> task) const;

  std::shared_ptr<ActorHost> host_;
  asio::execution_context* context_;
};

/// Runs the coroutine in the actor's turns, once the arguments' bytes are here; at its end calls
/// host->end_coroutine(). In a turn.
void start_coroutine(std::shared_ptr<CoroutineCall> call, const std::shared_ptr<Process>& process);

}  // namespace runtime
