// ArrayView<T>: a read-only array in shared memory, used in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/codec/codec.h"

namespace runtime {

/// An array of arithmetic elements that is not copied: a view into the object store (or into a
/// received message). It pins the bytes while it or a copy of it lives. As a parameter of a method
/// it takes what a std::vector<T> argument would, and travels like one.
template <class T>
class ArrayView {
 public:
  static_assert(Packable<T>);
  using value_type = T;

  ArrayView() = default;
  ArrayView(std::span<const T> values, std::shared_ptr<const void> owner)
      : values_(values), owner_(std::move(owner)) {}
  /// Takes over a vector.
  ArrayView(std::vector<T> values) {  // NOLINT(google-explicit-constructor): so that a vector can
                                      // be passed as an argument
    auto owned = std::make_shared<const std::vector<T>>(std::move(values));
    values_ = *owned;
    owner_ = std::move(owned);
  }

  /// As an ObjectView's value.
  const std::span<const T>& operator*() const { return values_; }
  const std::span<const T>* operator->() const { return &values_; }
  std::span<const T> span() const { return values_; }
  operator std::span<const T>() const {
    return values_;
  }  // NOLINT(google-explicit-constructor): it is one
  const T* data() const { return values_.data(); }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T& operator[](std::size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::vector<T> to_vector() const { return {values_.begin(), values_.end()}; }

 private:
  std::span<const T> values_;
  std::shared_ptr<const void> owner_;
};

/// Whether an encoded A can be decoded as a B: an object made as one may be read as the other.
template <class A, class B>
inline constexpr bool kSameEncoding = std::is_same_v<A, B>;
template <class T>
inline constexpr bool kSameEncoding<std::vector<T>, ArrayView<T>> = Packable<T>;
template <class T>
inline constexpr bool kSameEncoding<ArrayView<T>, std::vector<T>> = Packable<T>;

/// The same bytes as a std::vector<T>, so that either side may use either type.
template <class T>
struct Codec<ArrayView<T>> {
  static void encode(Encoder& encoder, const ArrayView<T>& view) {
    encoder.write_array(view.data(), view.size(), sizeof(T));
  }
  static void decode(Decoder& decoder, ArrayView<T>& view) {
    auto raw = decoder.read_array(sizeof(T));
    if (raw.empty()) {
      view = {};
    } else if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignof(T) == 0 && decoder.owner()) {
      view = ArrayView<T>({reinterpret_cast<const T*>(raw.data()), raw.size() / sizeof(T)},
                          decoder.owner());
    } else {
      std::vector<T> copy(raw.size() / sizeof(T));
      std::memcpy(copy.data(), raw.data(), raw.size());
      view = ArrayView<T>(std::move(copy));
    }
  }
};

}  // namespace runtime
