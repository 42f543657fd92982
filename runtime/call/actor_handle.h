// ActorHandle<T>: the address of an actor, through which its methods are called.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <typeindex>
#include <utility>

#include "runtime/call/actor_options.h"
#include "runtime/call/fwd.h"
#include "runtime/call/invoke.h"
#include "runtime/call/object_ref.h"
#include "runtime/core/ids.h"

namespace runtime {

namespace handle_detail {
/// What calls through a handle have unless CallOptions say otherwise.
struct CallDefaults {
  std::chrono::milliseconds timeout = kDefaultCallTimeout;
  std::int32_t max_task_retries = 0;
};
/// A handle's place in a value: the actor's address and its calls' defaults.
void encode_handle(Encoder& encoder, const ActorClient* client, const CallDefaults& defaults);
std::shared_ptr<ActorClient> decode_handle(Decoder& decoder, CallDefaults* defaults);
/// Of the process of the newest incarnation known.
ActorId actor_of(const ActorClient& client);
NodeId node_of(const ActorClient& client);
std::int32_t pid_of(const ActorClient& client);
/// Calls a method. `client` may be null.
ObjectStatePtr start_call(ActorClient* client, std::type_index type, const MethodKey& method,
                          Encoder& arguments, std::chrono::milliseconds timeout,
                          std::int32_t retries);
/// The same of a method that yields values.
OpenStream open_stream(ActorClient* client, std::type_index type, const MethodKey& method,
                       Encoder& arguments, std::chrono::milliseconds timeout, std::uint32_t window);
}  // namespace handle_detail

/// Copyable and serialisable; any thread may use it. It does not keep the actor alive. An actor
/// lives until it is killed or terminated, or its process dies without a restart left. Unless it is
/// detached, it also ends with its owner: the actor or driver that spawned it. Calls of one process
/// to one actor run one at a time, in the order in which they were made. Each runs at most once
/// unless it may be retried (max_task_retries). While the actor is restarted, new calls wait for
/// its next incarnation, within their deadline.
template <class T>
class ActorHandle {
 public:
  /// Refers to no actor; calls fail with kInvalidArgument.
  ActorHandle() = default;
  explicit ActorHandle(std::shared_ptr<ActorClient> client,
                       handle_detail::CallDefaults defaults = {})
      : client_(std::move(client)), defaults_(defaults) {}

  bool is_valid() const { return client_ != nullptr; }
  ActorId id() const { return client_ ? handle_detail::actor_of(*client_) : ActorId{}; }
  NodeId node() const { return client_ ? handle_detail::node_of(*client_) : NodeId{}; }
  std::int32_t pid() const { return client_ ? handle_detail::pid_of(*client_) : 0; }

  /// Starts a call and returns at once: `handle.call(&Counter::add, 1)`. Arguments are copied; one
  /// may be an ObjectRef to the parameter's type, whose value is then passed from where it is, once
  /// it is there. The result of a method returning R or Result<R> is an R, of one returning Status
  /// or void it is void. Failures arrive with the result. They are the method's own Status,
  /// kDeadlineExceeded, and:
  /// - kTaskFailed: it threw.
  /// - kActorDied, with the cause, and whether the actor is being restarted.
  /// - kInvalidArgument: the actor is of a program with other methods.
  /// - kUnavailable: connection lost; it may have run.
  /// A method that takes a StreamWriter<V> gives a Stream<V>, which is to be kept and read.
  template <class M, class... Args>
  auto call(M method, const Args&... args) const {
    return call(CallOptions{}, method, args...);
  }

  template <class M, class... Args>
  auto call(const CallOptions& options, M method, const Args&... args) const {
    using Traits = MethodTraits<M>;
    static_assert(std::is_base_of_v<typename Traits::Class, T>, "not a method of this actor");
    const auto timeout = options.timeout_or(defaults_.timeout);
    const auto retries = options.max_task_retries.value_or(defaults_.max_task_retries);
    const auto with = [&](Encoder& encoder) {
      if constexpr (Traits::kIsStream) {
        return Stream<typename Traits::Item>(
            handle_detail::open_stream(client_.get(), typeid(T), MethodKey::of(method), encoder,
                                       timeout, options.stream_window));
      } else {
        return ObjectRef<typename Traits::Value>(handle_detail::start_call(
            client_.get(), typeid(T), MethodKey::of(method), encoder, timeout, retries));
      }
    };
    return with_arguments<typename Traits::Params>(with, args...);
  }

  bool operator==(const ActorHandle& other) const { return id() == other.id(); }

  const std::shared_ptr<ActorClient>& client() const { return client_; }
  const handle_detail::CallDefaults& defaults() const { return defaults_; }
  std::chrono::milliseconds call_timeout() const { return defaults_.timeout; }

 private:
  std::shared_ptr<ActorClient> client_;
  handle_detail::CallDefaults defaults_;
};

template <class T>
struct Codec<ActorHandle<T>> {
  static void encode(Encoder& encoder, const ActorHandle<T>& handle) {
    handle_detail::encode_handle(encoder, handle.client().get(), handle.defaults());
  }
  static void decode(Decoder& decoder, ActorHandle<T>& handle) {
    handle_detail::CallDefaults defaults;
    auto client = handle_detail::decode_handle(decoder, &defaults);
    handle = ActorHandle<T>(std::move(client), defaults);
  }
};

}  // namespace runtime
