// Methods of actors, with their names and options. On the wire a method is a 64-bit hash of class,
// name and signature.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>

#include "runtime/call/fwd.h"
#include "runtime/core/result.h"

namespace runtime {

using MethodId = std::uint64_t;

struct MethodOptions {
  /// The group of ActorOptions::concurrency_groups whose threads run it; empty, or a group that the
  /// actor was not given: the default one.
  std::string concurrency_group{};
  /// The longest that a call of it may take, in every actor of the class and for any caller; 0: no
  /// own limit.
  std::chrono::milliseconds timeout{0};
};

/// A member function with its own name or options. A name is needed for virtual methods and
/// where programs are stripped but should understand each other's actors; else it comes from the
/// program's symbols.
template <class M>
struct NamedMethod {
  std::string name;
  M pointer;
  MethodOptions options;
};
/// `register_actor<Shape>("Shape", method("area", &Shape::area), method(&Shape::load,
/// {.concurrency_group = "io"}))`
template <class M>
NamedMethod<M> method(std::string name, M pointer, MethodOptions options = {}) {
  return {std::move(name), pointer, std::move(options)};
}
template <class M>
requires std::is_member_function_pointer_v<M> NamedMethod<M> method(M pointer,
                                                                    MethodOptions options = {}) {
  return {{}, pointer, std::move(options)};
}

namespace method_detail {

template <class R>
struct Unwrapped {
  using type = R;
};
template <>
struct Unwrapped<Status> {
  using type = void;
};
template <class R>
struct Unwrapped<Result<R>> {
  using type = R;
};

/// A method's parameters without what the runtime gives it: first a CallContext, then a
/// StreamWriter, each or none.
template <class... P>
struct WithoutWriter {
  using Arguments = std::tuple<P...>;
  using Item = void;
};
template <class T, class... P>
struct WithoutWriter<StreamWriter<T>, P...> {
  using Arguments = std::tuple<P...>;
  using Item = T;
};
template <class... P>
struct Parameters : WithoutWriter<P...> {
  static constexpr bool kTakesContext = false;
};
template <class... P>
struct Parameters<CallContext, P...> : WithoutWriter<P...> {
  static constexpr bool kTakesContext = true;
};

template <class P>
inline constexpr bool kIsWriter = false;
template <class T>
inline constexpr bool kIsWriter<StreamWriter<T>> = true;

template <class R>
struct AwaitedOf {
  using type = R;
  static constexpr bool kIsCoroutine = false;
};
template <class R>
struct AwaitedOf<boost::asio::awaitable<R, boost::asio::any_io_executor>> {
  using type = R;
  static constexpr bool kIsCoroutine = true;
};

template <class C, class R, class... P>
struct Traits : Parameters<std::decay_t<P>...> {
  using Class = C;
  using Return = R;
  using Params = typename Parameters<std::decay_t<P>...>::Arguments;
  static constexpr bool kIsCoroutine = AwaitedOf<std::decay_t<R>>::kIsCoroutine;
  /// What the method returns, or its coroutine in the end.
  using Awaited = typename AwaitedOf<std::decay_t<R>>::type;
  /// What a caller gets: R itself, R of Result<R>, void for Status.
  using Value = typename Unwrapped<std::decay_t<Awaited>>::type;
  static constexpr bool kMutableReference =
      ((std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>> &&
        !kIsWriter<std::remove_reference_t<P>>) ||
       ...);
  /// Whether it yields many values, of type Item.
  static constexpr bool kIsStream = !std::is_void_v<typename Parameters<std::decay_t<P>...>::Item>;
  static_assert(!kIsStream || (!kIsCoroutine && std::is_void_v<Value>),
                "a method that yields values through a StreamWriter returns Status or void, and is "
                "no coroutine");
};

}  // namespace method_detail

template <class M>
struct MethodTraits;
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...)> : method_detail::Traits<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) const> : method_detail::Traits<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) noexcept> : method_detail::Traits<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) const noexcept> : method_detail::Traits<C, R, P...> {};

/// What plain functions belong to (task.h).
struct TaskRunner;
template <class R, class... P>
struct MethodTraits<R (*)(P...)> : method_detail::Traits<TaskRunner, R, P...> {};

/// A pointer to (member) function as a value to look up: its bytes and its type.
struct MethodKey {
  std::array<std::byte, 16> pointer{};
  std::type_index type = typeid(void);

  bool operator==(const MethodKey&) const = default;

  template <class M>
  static MethodKey of(M pointer) {
    static_assert((std::is_member_function_pointer_v<M> ||
                   std::is_function_v<std::remove_pointer_t<M>>)&&sizeof(M) <= 16);
    MethodKey key;
    std::memcpy(key.pointer.data(), &pointer, sizeof pointer);
    key.type = typeid(M);
    return key;
  }
  template <class M>
  M as() const {
    M result;
    std::memcpy(&result, pointer.data(), sizeof result);
    return result;
  }
  /// The function's address; null for virtual methods, whose pointers only say which one (Itanium
  /// C++ ABI, 2.3).
  const void* address() const;
};

struct MethodKeyHash {
  std::size_t operator()(const MethodKey& key) const noexcept {
    std::uint64_t first = 0;
    std::memcpy(&first, key.pointer.data(), sizeof first);
    return (first ^ key.type.hash_code()) * 0x9E3779B97F4A7C15ull;
  }
};

/// The hash that stands for a method on the wire.
MethodId method_id(const std::string& class_name, const std::string& method_name,
                   const std::string& signature);

}  // namespace runtime
