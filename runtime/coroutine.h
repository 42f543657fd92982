// Coroutine methods: what a program includes besides runtime.h to write them. It brings Boost.Asio,
// which runtime.h does without.
//
//   class Router {
//    public:
//     explicit Router(Runtime& runtime) : runtime_(runtime) {}
//     asio::awaitable<Result<std::string>> ask(std::string question) {
//       ObjectRef<std::string> answer = backend_.call(&Backend::answer, question);
//       // Other calls of this actor run meanwhile.
//       co_return co_await runtime_.async_get(answer);
//     }
//
// An actor whose class has a coroutine method runs all its methods on one thread at a time. Others
// run while one waits in a co_await, so that members need no lock, but are to be read again after
// it. ActorOptions::max_concurrency (and the groups') says how many calls may be in progress at
// once; with the default of one they run one by one. The coroutine's executor is the actor's:
// timers and sockets made with it resume there. What blocks (Runtime::get) blocks the whole actor.
//
// A method's parameters live until it ends. Cancelling a call ends the operation it awaits
// (Runtime::async_get with kCancelled), and the next co_await throws, which ends the call with
// kCancelled. g++ 12 destroys some temporaries of a co_await expression twice: give lambdas with
// captures and aggregates a name first.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/call/coroutine_state.h"
#include "runtime/call/get.h"
#include "runtime/core/asio.h"
#include "runtime/runtime.h"
#include "runtime/worker/coroutine_await.h"

namespace runtime {

template <class T>
asio::awaitable<Result<T>> Runtime::async_get(ObjectRef<T> ref, Until until) {
  if (!ref.is_valid()) {
    Result<T> missing = nothing_to_get();
    co_return missing;
  }
  static_assert(
      !view_detail::kBorrows<T>,
      "spans and string views point into the object: read it with ObjectApi::view, which keeps it");
  auto waiting = coroutine_detail::opened(ref.state(), until.at());
  Result<Buffer> bytes = co_await std::move(waiting);
  if (!bytes.ok()) {
    Result<T> failed = bytes.status();
    co_return failed;
  }
  Decoder decoder = ref.state()->decoder(*std::move(bytes));
  Result<T> value = decode_all<T>(decoder);
  co_return value;
}

inline asio::awaitable<Status> Runtime::async_get(ObjectRef<void> ref, Until until) {
  if (!ref.is_valid()) {
    Status missing = nothing_to_get();
    co_return missing;
  }
  auto waiting = coroutine_detail::opened(ref.state(), until.at());
  Result<Buffer> bytes = co_await std::move(waiting);
  Status status = bytes.status();
  co_return status;
}

template <class T, class M>
asio::awaitable<Status> invoke_coroutine(std::shared_ptr<CoroutineState> call) {
  using Traits = MethodTraits<M>;
  using Value = typename Traits::Awaited;
  auto executor = co_await asio::this_coro::executor;
  auto cancellation = co_await asio::this_coro::cancellation_state;
  coroutine_detail::mark_own_chain(executor, cancellation);
  Status failure;
  auto arguments = decode_arguments<typename Traits::Params>(*call->arguments,
                                                             call->context.deadline(), failure);
  Status malformed = call->arguments->finish();
  if (!malformed.ok()) co_return malformed;
  if (!failure.ok()) co_return failure;
  T& self = *static_cast<T*>(call->actor.get());
  const M method = call->method.as<M>();
  auto start = [&](auto&... argument) {
    if constexpr (Traits::kTakesContext)
      return (self.*method)(call->context, std::move(argument)...);
    else
      return (self.*method)(std::move(argument)...);
  };
  auto running = std::apply(start, arguments);
  if constexpr (std::is_void_v<Value>) {
    co_await std::move(running);
    co_return Status();
  } else if constexpr (std::is_same_v<Value, Status>) {
    Status status = co_await std::move(running);
    co_return status;
  } else if constexpr (runtime_detail::kIsResult<Value>) {
    Value result = co_await std::move(running);
    if (!result.ok()) {
      Status status = result.status();
      co_return status;
    }
    keep_result(call->output, *std::move(result));
    co_return Status();
  } else {
    Value result = co_await std::move(running);
    keep_result(call->output, std::move(result));
    co_return Status();
  }
}

}  // namespace runtime
