// Invoking a method from bytes: decode the arguments, call, encode the result. The templates behind
// Runtime::register_actor.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/call/call_context.h"
#include "runtime/call/method.h"
#include "runtime/call/object_ref.h"
#include "runtime/call/stream.h"
#include "runtime/codec/array_view.h"
#include "runtime/codec/codec.h"
#include "runtime/core/status.h"

namespace runtime {

/// Each argument is behind a tag: the value itself, or a reference to an object whose value is
/// meant.
enum class ArgumentTag : std::uint8_t {
  kValue = 0,
  kRef = 1,
  kMissing = 2 /* a default-constructed ObjectRef */
};

/// The result of one invocation. The encoder may borrow arrays of the result, so `result` lives
/// until the bytes are taken.
struct InvokeOutput {
  Encoder encoder;
  std::shared_ptr<const void> result;
};

/// One call to be made. Everything outlives the call.
struct Invocation {
  void* actor;
  const MethodKey& method;
  Decoder& arguments;
  const CallContext& context;
  InvokeOutput& output;
  StreamSink* stream = nullptr;   // of a method that yields values
  StateKeeper* states = nullptr;  // of a class that saves its state
};

/// Calls the method. Its exceptions pass through. Errors: kInvalidArgument (malformed arguments),
/// the failure of an argument that is a reference, the method's own.
using Invoker = Status (*)(Invocation& call);
/// The same for a coroutine method, not started yet. The templates that make it are at the top, in
/// runtime/coroutine.h.
using CoroutineInvoker = boost::asio::awaitable<Status, boost::asio::any_io_executor> (*)(
    std::shared_ptr<CoroutineState> call);

namespace invoke_detail {

/// One argument for a parameter of type P; an ObjectRef<P> given for a P is awaited and its value
/// passed.
template <class P>
P decode_argument(Decoder& decoder, Deadline deadline, Status& failure) {
  P value{};
  auto tag = decoder.read<ArgumentTag>();
  if (tag == ArgumentTag::kValue) {
    decode_value(decoder, value);
  } else if (tag == ArgumentTag::kRef) {
    ObjectStatePtr state = referred_object(decoder.read_ref());
    if (!state) return value;
    Result<P> fetched = fetch<P>(*state, deadline);
    if (fetched.ok())
      value = *std::move(fetched);
    else if (failure.ok())
      failure = fetched.status().with_context("argument");
  } else if (tag == ArgumentTag::kMissing) {
    if (failure.ok())
      failure = invalid_argument("an argument is an ObjectRef that refers to nothing");
  } else {
    decoder.fail("an unknown argument tag");
  }
  return value;
}

/// Calls a member function, or (for tasks) a plain one.
template <class T, class M, class... Args>
decltype(auto) apply(T& self, M method, Args&&... args) {
  if constexpr (std::is_member_function_pointer_v<M>)
    return (self.*method)(std::forward<Args>(args)...);
  else
    return method(std::forward<Args>(args)...);
}

/// Whether the argument is a reference to an object that can be read as the parameter's type.
template <class P, class A>
inline constexpr bool kIsRefTo = false;
template <class P, class T>
inline constexpr bool kIsRefTo<P, ObjectRef<T>> = kSameEncoding<T, P>;

/// The argument as its parameter's type: itself if it is that already or a reference to it, else
/// converted.
template <class P, class A>
decltype(auto) as_parameter(const A& argument) {
  if constexpr (std::is_same_v<A, P> || kIsRefTo<P, A>) {
    return (argument);
  } else {
    static_assert(std::is_convertible_v<const A&, P>,
                  "the argument does not convert to the method's parameter (an ObjectRef must hold "
                  "exactly its type)");
    return static_cast<P>(argument);
  }
}

template <class P, class A>
void encode_argument(Encoder& encoder, const A& argument) {
  if constexpr (!std::is_same_v<A, P> && kIsRefTo<P, A>) {
    encoder.write(argument.is_valid() ? ArgumentTag::kRef : ArgumentTag::kMissing);
    if (argument.is_valid()) encoder.write_ref(argument.state());
  } else {
    encoder.write(ArgumentTag::kValue);
    encode_value(encoder, argument);
  }
}

}  // namespace invoke_detail

/// Encodes arguments for parameters `Params` (a tuple of decayed types), then calls `done(encoder)`
/// while everything that the encoder borrows still lives.
template <class Params, class Done, class... Args>
decltype(auto) with_arguments(Done&& done, const Args&... args) {
  static_assert(std::tuple_size_v<Params> == sizeof...(Args),
                "the method takes another number of arguments");
  return [&]<class... P>(std::type_identity<std::tuple<P...>>) -> decltype(auto) {
    Encoder encoder;
    // References stay references here; only converted arguments are values.
    std::tuple<decltype(invoke_detail::as_parameter<P>(args))...> held(
        invoke_detail::as_parameter<P>(args)...);
    std::apply(
        [&](const auto&... argument) {
          (invoke_detail::encode_argument<P>(encoder, argument), ...);
        },
        held);
    return done(encoder);
  }(std::type_identity<Params>());
}

/// Decodes arguments for `Params` in order. `failure` is set when one is a reference without a
/// value.
template <class Params>
Params decode_arguments(Decoder& decoder, Deadline deadline, Status& failure) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return Params{invoke_detail::decode_argument<std::tuple_element_t<I, Params>>(decoder, deadline,
                                                                                  failure)...};
  }
  (std::make_index_sequence<std::tuple_size_v<Params>>());
}

/// Encodes a method's result.
template <class R>
void keep_result(InvokeOutput& output, R value) {
  if constexpr (Packable<R>) {
    encode_value(output.encoder, value);
  } else {
    auto kept = std::make_shared<const R>(std::move(value));
    encode_value(output.encoder, *kept);
    output.result = std::move(kept);
  }
}

/// The Invoker of method type M on class T.
template <class T, class M>
Status invoke_method(Invocation& invocation) {
  using Traits = MethodTraits<M>;
  using Return = std::decay_t<typename Traits::Return>;
  static_assert(std::is_base_of_v<typename Traits::Class, T>);
  static_assert(!Traits::kMutableReference,
                "a method's parameter cannot be a mutable reference: arguments are copies");
  Status failure;
  auto arguments = decode_arguments<typename Traits::Params>(
      invocation.arguments, invocation.context.deadline(), failure);
  if (Status status = invocation.arguments.finish(); !status.ok()) return status;
  if (!failure.ok()) return failure;
  T& self = *static_cast<T*>(invocation.actor);
  const M method = invocation.method.as<M>();
  auto call_with = [&](auto&... given) -> decltype(auto) {
    return std::apply(
        [&](auto&... argument) -> decltype(auto) {
          return invoke_detail::apply(self, method, given..., std::move(argument)...);
        },
        arguments);
  };
  auto call = [&]() -> decltype(auto) {
    if constexpr (Traits::kIsStream) {
      StreamWriter<typename Traits::Item> writer(*invocation.stream);
      if constexpr (Traits::kTakesContext)
        return call_with(invocation.context, writer);
      else
        return call_with(writer);
    } else if constexpr (Traits::kTakesContext) {
      return call_with(invocation.context);
    } else {
      return call_with();
    }
  };
  auto keep = [&](auto value) { keep_result(invocation.output, std::move(value)); };
  if constexpr (std::is_void_v<Return>) {
    call();
  } else if constexpr (std::is_same_v<Return, Status>) {
    return call();
  } else if constexpr (!std::is_same_v<typename Traits::Value, Return>) {  // Result<R>
    Return result = call();
    if (!result.ok()) return result.status();
    keep(*std::move(result));
  } else {
    keep(Return(call()));
  }
  return {};
}

}  // namespace runtime
