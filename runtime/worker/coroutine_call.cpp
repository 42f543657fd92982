#include "runtime/worker/coroutine_call.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/call/blocked_calls.h"
#include "runtime/call/object_context.h"
#include "runtime/call/stored_object.h"
#include "runtime/call/thrown.h"
#include "runtime/core/simulation.h"
#include "runtime/core/timer.h"
#include "runtime/transport/event_loop.h"
#include "runtime/worker/coroutine_await.h"

namespace runtime {

void CoroutineCall::OnStop::operator()() const {
  auto held = call.lock();
  if (!held) return;
  CoroutineHost& host = *held->host;
  host.run_in_turn(
      [held = std::move(held)] { held->signal.emit(asio::cancellation_type::terminal); });
}

void ActorStrand::run_in_turn(UniqueFunction<void()> task) const {
  shared_->host->run_in_turn(std::move(task));
}

namespace {

/// Arguments in a store, perhaps of another node: other calls of the actor run while they come.
asio::awaitable<Status> fetch_and_invoke(std::shared_ptr<CoroutineCall> call,
                                         ObjectContextPtr context, CoroutineInvoker invoke) {
  auto waiting = coroutine_detail::opened(ObjectState::ready(context, call->job->arguments),
                                          call->context.deadline());
  Result<Buffer> bytes = co_await std::move(waiting);
  call->host->end_fetch(*call);
  if (!bytes.ok()) {
    Status failed = bytes.status().with_context("arguments");
    co_return failed;
  }
  call->arguments.emplace(*std::move(bytes), call->refs, context);
  auto running = invoke(call);
  Status status = co_await std::move(running);
  co_return status;
}

/// What co_spawn tells of the coroutine's end. With asio::bind_cancellation_slot() instead, Asio
/// (1.81) would hand each cancellation on by way of the executor. There it would touch the spawned
/// coroutine's memory, though that may have ended in between. Of a handler without an executor it
/// emits at once, in the same turn.
struct CoroutineEnd {
  using cancellation_slot_type = asio::cancellation_slot;
  cancellation_slot_type get_cancellation_slot() const noexcept { return call->signal.slot(); }

  void operator()(std::exception_ptr failure, Status status) const {
    call->on_stop.reset();
    if (failure) status = call->context.cancelled() ? call->context.status() : status_of(failure);
    call->host->end_coroutine(*call, std::move(status));
  }

  std::shared_ptr<CoroutineCall> call;
};

}  // namespace

void start_coroutine(std::shared_ptr<CoroutineCall> call, const ServedCall& served,
                     const ObjectContextPtr& context) {
  ActorStrand strand(call->host, context->loop.context(), served);
  call->on_stop.emplace(call->context.stop_token(), CoroutineCall::OnStop{call});
  const CoroutineInvoker invoke = call->job->method->coroutine;
  if (!call->fetches)
    call->arguments.emplace(std::move(call->job->arguments.bytes), call->refs, context);
  auto method = call->fetches ? fetch_and_invoke(call, context, invoke) : invoke(call);
  asio::co_spawn(asio::any_io_executor(strand), std::move(method), CoroutineEnd{std::move(call)});
}

namespace coroutine_detail {

void mark_own_chain(const asio::any_io_executor& executor,
                    const asio::cancellation_state& cancellation) {
  if (const auto* strand = executor.target<ActorStrand>()) strand->own_slot() = cancellation.slot();
}

namespace {

/// The search for cycles that a coroutine's wait is part of. Does nothing where something else
/// than the object could end the wait: in a chain of coroutines that is not the call's own.
class CycleSearch {
 public:
  CycleSearch(const asio::any_io_executor& executor, const asio::cancellation_state& cancellation,
              const ObjectState& object, Deadline deadline)
      : object_(object), deadline_(deadline), next_(deadline) {
    strand_ = executor.target<ActorStrand>();
    if (simulation() || !strand_ || !object.producer() ||
        strand_->own_slot() != cancellation.slot())
      return;
    next_ = std::min(deadline, deadline_after(BlockedCalls::kPeriod));
  }

  /// When announce() is due, the deadline at the latest.
  Deadline next() const { return next_; }
  void announce() {
    if (!registered_)
      registered_.emplace(object_.context()->blocked_calls.enter(
          strand_->call(), {object_.producer()}, deadline_ != Deadline::max()));
    registered_->announce();
    next_ = std::min(deadline_, next_ + BlockedCalls::kPeriod);
  }
  /// `what`, with the cycle that is known.
  Status late(const std::string& what) const {
    const std::string cycle = registered_ ? registered_->cycle() : std::string();
    return deadline_exceeded(cycle.empty() ? what : what + ": " + cycle);
  }

 private:
  const ObjectState& object_;
  const Deadline deadline_;
  const ActorStrand* strand_;
  Deadline next_;
  std::optional<RegisteredWait> registered_;
};

}  // namespace

asio::awaitable<Status> settled(ObjectStatePtr object, Deadline deadline) {
  auto executor = co_await asio::this_coro::executor;
  auto cancellation = co_await asio::this_coro::cancellation_state;
  CycleSearch search(executor, cancellation, *object, deadline);
  // The timer is the bell: it rings at the deadline, and is cancelled when the object settles or
  // the coroutine is told to end.
  auto timer = std::make_shared<Timer>(executor, search.next());
  auto ring = [timer, executor] { asio::post(executor, [timer] { timer->cancel(); }); };
  object->then(std::move(ring));
  while (!object->is_settled()) {
    auto token = asio::as_tuple(asio::use_awaitable);
    auto [error] = co_await timer->async_wait(token);
    if (object->is_settled()) break;
    if (error) {
      Status why = cancelled("the call that awaits the object was cancelled");
      co_return why;
    }
    if (search.next() >= deadline) {
      Status why = search.late("the object was not there in time");
      co_return why;
    }
    search.announce();
    timer->expires_at(search.next());
  }
  co_return Status();
}

namespace {

/// Bytes in flight. The second of the bytes and the deadline finds the other done.
struct Arrival {
  std::mutex mutex;
  std::optional<Result<Buffer>> bytes;
  std::optional<Result<Buffer>> take() {
    std::lock_guard lock(mutex);
    return std::exchange(bytes, std::nullopt);
  }
};

}  // namespace

asio::awaitable<Result<Buffer>> opened(ObjectStatePtr object, Deadline deadline) {
  auto waiting = settled(object, deadline);
  Status status = co_await std::move(waiting);
  if (!status.ok()) {
    Result<Buffer> failed = status;
    co_return failed;
  }
  auto executor = co_await asio::this_coro::executor;
  auto timer = std::make_shared<Timer>(executor, deadline);
  auto arrival = std::make_shared<Arrival>();
  auto arrived = [arrival, timer, executor](Result<Buffer> bytes) {
    {
      std::lock_guard lock(arrival->mutex);
      arrival->bytes = std::move(bytes);
    }
    asio::post(executor, [timer] { timer->cancel(); });
  };
  object->open(deadline, std::move(arrived));
  std::optional<Result<Buffer>> bytes = arrival->take();
  if (!bytes) {
    auto token = asio::as_tuple(asio::use_awaitable);
    auto [error] = co_await timer->async_wait(token);
    bytes = arrival->take();
    if (!bytes && error)
      bytes = Result<Buffer>(cancelled("the call that awaits the object was cancelled"));
    if (!bytes)
      bytes = Result<Buffer>(deadline_exceeded("the object's bytes were not here in time"));
  }
  Result<Buffer> result = *std::move(bytes);
  co_return result;
}

}  // namespace coroutine_detail

}  // namespace runtime
