// UniqueFunction: a callable that is owned once, so that it may own move-only things
// (std::move_only_function is C++23).
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/core/check.h"

namespace runtime {

template <class Signature>
class UniqueFunction;

/// Holds any callable of the signature. Up to 48 bytes are stored in place, so that a callback that
/// captures a few pointers costs no allocation. Calling an empty one is a bug.
template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): reads as "no callback"

  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& callable) {  // NOLINT(google-explicit-constructor): a lambda converts
    using Callable = std::decay_t<F>;
    if constexpr (kInPlace<Callable>) {
      new (storage_) Callable(std::forward<F>(callable));
      table_ = &kInPlaceTable<Callable>;
    } else {
      new (storage_) Callable*(new Callable(std::forward<F>(callable)));
      table_ = &kHeapTable<Callable>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return table_ != nullptr; }

  R operator()(Args... args) {
    CHECK(table_ != nullptr);
    return table_->call(storage_, std::forward<Args>(args)...);
  }

 private:
  static constexpr std::size_t kStorageBytes = 48;

  struct Table {
    R (*call)(void*, Args&&...);
    void (*move)(void* to, void* from);  // leaves `from` destroyed
    void (*destroy)(void*);
  };

  template <class C>
  static constexpr bool kInPlace =
      sizeof(C) <= kStorageBytes &&
      alignof(C) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<C>;

  template <class C>
  static constexpr Table kInPlaceTable{[](void* at, Args&&... args) -> R {
                                         return (*static_cast<C*>(at))(std::forward<Args>(args)...);
                                       },
                                       [](void* to, void* from) {
                                         new (to) C(std::move(*static_cast<C*>(from)));
                                         static_cast<C*>(from)->~C();
                                       },
                                       [](void* at) { static_cast<C*>(at)->~C(); }};

  template <class C>
  static constexpr Table kHeapTable{
      [](void* at, Args&&... args) -> R {
        return (**static_cast<C**>(at))(std::forward<Args>(args)...);
      },
      [](void* to, void* from) { new (to) C*(*static_cast<C**>(from)); },
      [](void* at) { delete *static_cast<C**>(at); }};

  void take(UniqueFunction& other) {
    if (!other.table_) return;
    other.table_->move(storage_, other.storage_);
    table_ = std::exchange(other.table_, nullptr);
  }
  void reset() {
    if (table_) std::exchange(table_, nullptr)->destroy(storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kStorageBytes];
  const Table* table_ = nullptr;
};

}  // namespace runtime
