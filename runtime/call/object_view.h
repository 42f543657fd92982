// ObjectView<T>: an object's value read in place. T may be, or have members that are, spans and
// string views into the object's bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/call/object_ref.h"
#include "runtime/codec/array_view.h"

namespace runtime {

/// A value whose spans and string views point into an object. The memory is read-only, and each
/// span is aligned to 64 bytes. Nothing is copied when the object lies in a node's store. The view
/// pins the bytes: they stay when every reference is gone and when the maker has died. Copies of
/// the value are only as good as the view.
template <class T>
class ObjectView {
 public:
  ObjectView() = default;
  /// Private to the runtime: see ObjectApi::view.
  ObjectView(T value, std::shared_ptr<const void> owner)
      : value_(std::move(value)), owner_(std::move(owner)) {}

  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_{};
  std::shared_ptr<const void> owner_;
};

namespace view_detail {

inline constexpr std::size_t kAlignment = 64;

/// The same bytes at an address that is a multiple of 64. They stay where they are if they lie so,
/// which those in a node's store do.
Buffer aligned(Buffer bytes);

/// Whether a decoded T points into the bytes that it was decoded from.
template <class T>
struct Borrows : std::false_type {};
template <class T>
inline constexpr bool kBorrows = Borrows<std::remove_cv_t<T>>::value;
template <class E>
struct Borrows<std::span<const E>> : std::true_type {};
template <>
struct Borrows<std::string_view> : std::true_type {};
template <class... T>
struct Borrows<std::vector<T...>> : std::bool_constant<(kBorrows<T> || ...)> {};
template <class T, std::size_t N>
struct Borrows<std::array<T, N>> : Borrows<T> {};
template <class T>
struct Borrows<std::optional<T>> : Borrows<T> {};
template <class... T>
struct Borrows<std::pair<T...>> : std::bool_constant<(kBorrows<T> || ...)> {};
template <class... T>
struct Borrows<std::tuple<T...>> : std::bool_constant<(kBorrows<T> || ...)> {};
template <class... T>
struct Borrows<std::variant<T...>> : std::bool_constant<(kBorrows<T> || ...)> {};
template <class K, class V>
struct Borrows<std::map<K, V>> : std::bool_constant<kBorrows<K> || kBorrows<V>> {};
template <class K, class V>
struct Borrows<std::unordered_map<K, V>> : std::bool_constant<kBorrows<K> || kBorrows<V>> {};
template <class... T>
constexpr bool any_borrows(std::type_identity<std::tuple<T&...>>) {
  return (kBorrows<T> || ...);
}
template <HasFields T>
struct Borrows<T>
    : std::bool_constant<any_borrows(std::type_identity<decltype(std::declval<T&>().fields())>{})> {
};

/// What a T is viewed as.
template <class T>
struct Viewed {
  using Type = ObjectView<T>;
};
template <class E>
requires Packable<E>
struct Viewed<std::vector<E>> {
  using Type = ArrayView<E>;
};
template <class E>
struct Viewed<ArrayView<E>> {
  using Type = ArrayView<E>;
};

}  // namespace view_detail

/// An array that its owner keeps; read with ObjectApi::view, or taken by a method, where it is good
/// until the method has ended. Its bytes begin at a multiple of 64 of the encoding, however few
/// they are.
template <class E>
struct Codec<std::span<const E>> {
  static_assert(Packable<E>);

  static void encode(Encoder& encoder, const std::span<const E>& values) {
    if (values.size_bytes() >= kLargeArrayBytes) {
      encoder.write(std::uint8_t{1});
      return encoder.write_array(values.data(), values.size(), sizeof(E));
    }
    constexpr std::byte kZeros[view_detail::kAlignment] = {};
    encoder.write(std::uint8_t{0});
    encoder.write_length(values.size());
    const std::size_t padding =
        (view_detail::kAlignment - (encoder.size() + 1) % view_detail::kAlignment) %
        view_detail::kAlignment;
    encoder.write(static_cast<std::uint8_t>(padding));
    encoder.write_raw({kZeros, padding});
    encoder.write_raw(std::as_bytes(values));
  }
  static void decode(Decoder& decoder, std::span<const E>& values) {
    std::span<const std::byte> raw;
    const auto kind = decoder.read<std::uint8_t>();
    if (kind == 1) {
      raw = decoder.read_array(sizeof(E));
    } else if (kind == 0) {
      const std::size_t count = decoder.read_length();
      decoder.read_raw(decoder.read<std::uint8_t>());
      raw = decoder.read_raw(count * sizeof(E));  // read_length() has bounded it
    } else {
      decoder.fail("an array that is neither short nor long");
    }
    if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignof(E) != 0)
      decoder.fail("an array at an address that is not a multiple of its alignment");
    values = decoder.ok()
                 ? std::span(reinterpret_cast<const E*>(raw.data()), raw.size() / sizeof(E))
                 : std::span<const E>();
  }
};

template <>
struct Codec<std::string_view> {
  static void encode(Encoder& encoder, const std::string_view& text) {
    Codec<std::span<const char>>::encode(encoder, {text.data(), text.size()});
  }
  static void decode(Decoder& decoder, std::string_view& text) {
    std::span<const char> raw;
    Codec<std::span<const char>>::decode(decoder, raw);
    text = {raw.data(), raw.size()};
  }
};

/// Waits for the object and decodes it in place. What ObjectApi::view does.
template <class T>
Result<typename view_detail::Viewed<T>::Type> view_of(const ObjectState& state, Deadline deadline) {
  using View = typename view_detail::Viewed<T>::Type;
  Result<Buffer> opened = state.open(deadline);
  if (!opened.ok()) return opened.status();
  const Buffer bytes = view_detail::aligned(*std::move(opened));
  Decoder decoder = state.decoder(bytes);
  if constexpr (std::is_same_v<View, ObjectView<T>>) {
    Result<T> value = decode_all<T>(decoder);
    if (!value.ok()) return value.status();
    return View(*std::move(value), bytes.owner());
  } else {  // an array: small ones are encoded without regard to 64
    using E = typename T::value_type;
    const std::span<const std::byte> raw = decoder.read_array(sizeof(E));
    if (Status status = decoder.finish(); !status.ok()) return status;
    if (raw.empty()) return View();
    const bool is_aligned =
        reinterpret_cast<std::uintptr_t>(raw.data()) % view_detail::kAlignment == 0;
    const Buffer array =
        is_aligned ? Buffer(raw, bytes.owner()) : view_detail::aligned(Buffer(raw, bytes.owner()));
    return View({reinterpret_cast<const E*>(array.data()), raw.size() / sizeof(E)}, array.owner());
  }
}

}  // namespace runtime
