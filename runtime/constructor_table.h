// A worker's table of the constructors that spawn<T>(options, args...) asks for.
//
// C++ cannot list a class's constructors, and asking users to repeat their parameters would be one
// more thing to get wrong. But the worker runs the same program as the driver. In both, before
// main, each instantiation of spawn() puts an entry for its argument types into this table. The
// table is constant from then on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>

#include "runtime/call/invoke.h"
#include "runtime/core/result.h"

namespace runtime {

class Runtime;

/// One way to make an actor: from arguments of these types.
struct ConstructorEntry {
  /// Makes the actor. Exceptions of the constructor pass through. Errors: as Invoker.
  using Construct = Result<std::shared_ptr<void>> (*)(Runtime& runtime, Decoder& arguments,
                                                      Deadline deadline);

  std::type_index type;
  std::string_view signature;  // the mangled parameter types: what travels
  Construct construct;
  ConstructorEntry* next = nullptr;

  ConstructorEntry(std::type_index actor_type, std::string_view arguments, Construct maker);
};

/// Null: no spawn() in this program makes such an actor from such arguments.
const ConstructorEntry* find_constructor(std::type_index type, std::string_view signature);

namespace constructor_detail {

/// The type an argument travels as: text as std::string, everything else as itself.
template <class A>
using Param = std::conditional_t<std::is_convertible_v<const A&, std::string_view> &&
                                     !std::is_same_v<A, std::string>,
                                 std::string, std::decay_t<A>>;

template <class T, class... P>
concept Creatable = requires(P... params) {
  { T::create(std::forward<P>(params)...) } -> std::same_as<Result<std::unique_ptr<T>>>;
};

template <class T, class... P>
Result<std::shared_ptr<void>> construct(Runtime& runtime, Decoder& decoder, Deadline deadline) {
  Status failure;
  auto arguments = decode_arguments<std::tuple<P...>>(decoder, deadline, failure);
  if (Status status = decoder.finish(); !status.ok()) return status;
  if (!failure.ok()) return failure;
  auto adopt = [](Result<std::unique_ptr<T>> made) -> Result<std::shared_ptr<void>> {
    if (!made.ok()) return made.status();
    if (!*made) return task_failed("create() has returned a null pointer");
    return std::shared_ptr<void>(std::shared_ptr<T>(*std::move(made)));
  };
  return std::apply(
      [&](auto&... argument) -> Result<std::shared_ptr<void>> {
        if constexpr (std::is_constructible_v<T, Runtime&, P...>) {
          return std::shared_ptr<void>(std::make_shared<T>(runtime, std::move(argument)...));
        } else if constexpr (std::is_constructible_v<T, P...>) {
          return std::shared_ptr<void>(std::make_shared<T>(std::move(argument)...));
        } else if constexpr (Creatable<T, Runtime&, P...>) {
          return adopt(T::create(runtime, std::move(argument)...));
        } else {
          static_assert(Creatable<T, P...>,
                        "the actor has neither a constructor nor a `static "
                        "Result<std::unique_ptr<T>> create` for these arguments "
                        "(with or without a Runtime& in front)");
          return adopt(T::create(std::move(argument)...));
        }
      },
      arguments);
}

}  // namespace constructor_detail

/// The entry of T made from arguments that travel as P.
template <class T, class... P>
struct Constructor {
  static inline ConstructorEntry entry{typeid(T), typeid(std::tuple<P...>).name(),
                                       &constructor_detail::construct<T, P...>};
};

}  // namespace runtime
