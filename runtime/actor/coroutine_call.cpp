#include "runtime/actor/coroutine_call.h"

#include "runtime/actor/actor_host.h"
#include "runtime/coroutine.h"

namespace runtime {

void CoroutineCall::OnStop::operator()() const {
  auto held = call.lock();
  if (!held) return;
  ActorHost& host = *held->host;
  host.run_in_turn([held = std::move(held)] { held->signal.emit(asio::cancellation_type::terminal); });
}

void ActorStrand::run_in_turn(UniqueFunction<void()> task) const { host_->run_in_turn(std::move(task)); }

void start_coroutine(std::shared_ptr<CoroutineCall> call, asio::execution_context& context, CoroutineInvoker invoke) {
  ActorStrand strand(call->host, context);
  auto slot = call->signal.slot();
  call->on_stop.emplace(call->context.stop_token(), CoroutineCall::OnStop{call});
  auto method = invoke(call);
  auto ended = [call](std::exception_ptr failure, Status status) {
    call->on_stop.reset();
    if (failure) status = call->context.cancelled() ? call->context.status() : status_of(failure);
    call->host->end_coroutine(*call, std::move(status));
  };
  asio::co_spawn(asio::any_io_executor(strand), std::move(method), asio::bind_cancellation_slot(slot, std::move(ended)));
}

namespace coroutine_detail {

asio::awaitable<Status> settled(ObjectStatePtr object, Deadline deadline) {
  auto executor = co_await asio::this_coro::executor;
  // The timer is the bell: it rings at the deadline, and is cancelled when the object settles or the coroutine is told to end.
  auto timer = std::make_shared<asio::steady_timer>(executor, deadline);
  auto ring = [timer, executor] { asio::post(executor, [timer] { timer->cancel(); }); };
  object->then(std::move(ring));
  if (!object->is_settled()) {
    auto token = asio::as_tuple(asio::use_awaitable);
    auto [error] = co_await timer->async_wait(token);
    if (!object->is_settled()) {
      Status why = error ? cancelled("the call that awaits the object was cancelled") : deadline_exceeded("the object was not there in time");
      co_return why;
    }
  }
  co_return Status();
}

}  // namespace coroutine_detail

}  // namespace runtime
