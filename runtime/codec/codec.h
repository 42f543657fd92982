// Codec<T>: how a type travels as an argument, a result or an object.
//
// Ready to use: arithmetic types, enums, std::string, vector, array, pair, tuple, optional,
// variant, map, set, unordered_map, unordered_set, chrono durations, filesystem::path, Id, Status,
// ObjectRef, ActorHandle, ArrayView. A struct joins with one line:
//
//   struct Sample {
//     std::string text;
//     std::vector<float> scores;
//     auto fields() { return std::tie(text, scores); }
//   };
//
// A type that is not yours gets a specialisation of Codec with encode() and decode(). Decoding
// reads outside bytes: it fails with kInvalidArgument, never with more memory than a small multiple
// of the bytes that came.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/codec/decoder.h"
#include "runtime/codec/encoder.h"
#include "runtime/core/huge_pages.h"
#include "runtime/core/ids.h"
#include "runtime/core/result.h"

namespace runtime {

/// A struct that lists its members: `auto fields() { return std::tie(a, b); }`. fields() must not
/// change anything: it is also called on values that are encoded.
template <class T>
concept HasFields = std::is_class_v<T> && requires(T& value) {
  std::tuple_size<decltype(value.fields())>::value;
};

/// A type that can be an argument, a result, or put into the object store. It must also be
/// default-constructible.
template <class T>
concept Serializable = requires(Encoder& encoder, Decoder& decoder, const T& in, T& out) {
  Codec<T>::encode(encoder, in);
  Codec<T>::decode(decoder, out);
}
&&std::is_default_constructible_v<T>;

/// Types whose arrays are copied as one block.
template <class T>
concept Packable = (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> &&
                    !std::is_same_v<T, long double>) ||
                   std::is_enum_v<T>;

/// Encodes one value. Large arrays in it are borrowed until the encoder's bytes are taken.
template <class T>
void encode_value(Encoder& encoder, const T& value) {
  static_assert(
      Serializable<T>,
      "give the type `auto fields() { return std::tie(...); }`, or specialise runtime::Codec");
  Codec<T>::encode(encoder, value);
}

template <class T>
void decode_value(Decoder& decoder, T& value) {
  static_assert(
      Serializable<T>,
      "give the type `auto fields() { return std::tie(...); }`, or specialise runtime::Codec");
  Codec<T>::decode(decoder, value);
}

/// A whole value and nothing behind it. Errors: kInvalidArgument.
template <class T>
Result<T> decode_all(Decoder& decoder) {
  T value{};
  decode_value(decoder, value);
  if (Status status = decoder.finish(); !status.ok()) return status;
  return value;
}

template <class T>
requires(Packable<T> && !std::is_same_v<T, bool>) struct Codec<T> {
  static void encode(Encoder& encoder, T value) { encoder.write(value); }
  static void decode(Decoder& decoder, T& value) { value = decoder.read<T>(); }
};

template <>
struct Codec<bool> {
  static void encode(Encoder& encoder, bool value) {
    encoder.write(static_cast<std::uint8_t>(value));
  }
  static void decode(Decoder& decoder, bool& value) { value = decoder.read_bool(); }
};

template <>
struct Codec<std::string> {
  static void encode(Encoder& encoder, const std::string& value) {
    if (value.size() < kLargeArrayBytes) {
      encoder.write_length(0);  // marks the short form; the long one starts with 1
      return encoder.write_text(value);
    }
    encoder.write_length(1);
    encoder.write_array(value.data(), value.size(), 1);
  }
  static void decode(Decoder& decoder, std::string& value) {
    if (decoder.read<std::uint8_t>() == 0) {
      value = decoder.read_text();
    } else {
      auto raw = decoder.read_array(1);
      value.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
    }
  }
};

template <>
struct Codec<std::filesystem::path> {
  static void encode(Encoder& encoder, const std::filesystem::path& value) {
    encoder.write_text(value.native());
  }
  static void decode(Decoder& decoder, std::filesystem::path& value) {
    value = std::string(decoder.read_text());
  }
};

namespace codec_detail {

/// Elements of a container; grows step by step, because the count is only a claim.
template <class Container, class Insert>
void decode_elements(Decoder& decoder, Container& values, Insert insert) {
  values.clear();
  std::size_t count = decoder.read_length();
  for (std::size_t i = 0; i < count && decoder.ok(); ++i) insert(values);
}

template <class Container>
void encode_elements(Encoder& encoder, const Container& values) {
  encoder.write_length(values.size());
  for (const auto& value : values) encode_value(encoder, value);
}

template <class Set>
struct SetCodec {
  static void encode(Encoder& encoder, const Set& values) { encode_elements(encoder, values); }
  static void decode(Decoder& decoder, Set& values) {
    decode_elements(decoder, values, [&](Set& set) {
      typename Set::value_type value{};
      decode_value(decoder, value);
      set.insert(std::move(value));
    });
  }
};

template <class Map>
struct MapCodec {
  static void encode(Encoder& encoder, const Map& values) {
    encoder.write_length(values.size());
    for (const auto& [key, value] : values) {
      encode_value(encoder, key);
      encode_value(encoder, value);
    }
  }
  static void decode(Decoder& decoder, Map& values) {
    decode_elements(decoder, values, [&](Map& map) {
      typename Map::key_type key{};
      typename Map::mapped_type value{};
      decode_value(decoder, key);
      decode_value(decoder, value);
      map.insert_or_assign(std::move(key), std::move(value));
    });
  }
};

/// The members of a tuple one after the other. An empty tuple takes a byte, so that every element
/// of a container takes at least one.
template <class Tuple>
void encode_tuple(Encoder& encoder, const Tuple& values) {
  if constexpr (std::tuple_size_v<Tuple> == 0) encoder.write<std::uint8_t>(0);
  std::apply([&](const auto&... value) { (encode_value(encoder, value), ...); }, values);
}

template <class Tuple>
void decode_tuple(Decoder& decoder, Tuple&& values) {
  if constexpr (std::tuple_size_v<std::remove_cvref_t<Tuple>> == 0) decoder.read<std::uint8_t>();
  std::apply([&](auto&... value) { (decode_value(decoder, value), ...); }, values);
}

}  // namespace codec_detail

template <class T>
struct Codec<std::vector<T>> {
  static void encode(Encoder& encoder, const std::vector<T>& values) {
    if constexpr (Packable<T>)
      encoder.write_array(values.data(), values.size(), sizeof(T));
    else
      codec_detail::encode_elements(encoder, values);
  }
  static void decode(Decoder& decoder, std::vector<T>& values) {
    if constexpr (Packable<T>) {
      auto raw = decoder.read_array(sizeof(T));
      if (values.capacity() < raw.size() / sizeof(T)) {
        values = std::vector<T>();
        values.reserve(raw.size() / sizeof(T));
        prefer_huge_pages(values.data(), raw.size());
      }
      // Through assign rather than resize and memcpy where the bytes allow it: no zeroing before
      // the copy.
      if (reinterpret_cast<std::uintptr_t>(raw.data()) % alignof(T) == 0) {
        auto first = reinterpret_cast<const T*>(raw.data());
        values.assign(first, first + raw.size() / sizeof(T));
      } else {
        values.resize(raw.size() / sizeof(T));
        std::memcpy(values.data(), raw.data(), raw.size());
      }
    } else {
      codec_detail::decode_elements(decoder, values, [&](std::vector<T>& vector) {
        vector.emplace_back();
        decode_value(decoder, vector.back());
      });
    }
  }
};

template <>
struct Codec<std::vector<bool>> {
  static void encode(Encoder& encoder, const std::vector<bool>& values) {
    encoder.write_length(values.size());
    for (bool value : values) Codec<bool>::encode(encoder, value);
  }
  static void decode(Decoder& decoder, std::vector<bool>& values) {
    codec_detail::decode_elements(
        decoder, values, [&](std::vector<bool>& vector) { vector.push_back(decoder.read_bool()); });
  }
};

template <class T, std::size_t N>
struct Codec<std::array<T, N>> {
  static void encode(Encoder& encoder, const std::array<T, N>& values) {
    codec_detail::encode_tuple(encoder, values);
  }
  static void decode(Decoder& decoder, std::array<T, N>& values) {
    codec_detail::decode_tuple(decoder, values);
  }
};

template <class A, class B>
struct Codec<std::pair<A, B>> {
  static void encode(Encoder& encoder, const std::pair<A, B>& value) {
    codec_detail::encode_tuple(encoder, value);
  }
  static void decode(Decoder& decoder, std::pair<A, B>& value) {
    codec_detail::decode_tuple(decoder, value);
  }
};

template <class... T>
struct Codec<std::tuple<T...>> {
  static void encode(Encoder& encoder, const std::tuple<T...>& value) {
    codec_detail::encode_tuple(encoder, value);
  }
  static void decode(Decoder& decoder, std::tuple<T...>& value) {
    codec_detail::decode_tuple(decoder, value);
  }
};

template <class K, class V>
struct Codec<std::map<K, V>> : codec_detail::MapCodec<std::map<K, V>> {};
template <class K, class V>
struct Codec<std::unordered_map<K, V>> : codec_detail::MapCodec<std::unordered_map<K, V>> {};
template <class T>
struct Codec<std::set<T>> : codec_detail::SetCodec<std::set<T>> {};
template <class T>
struct Codec<std::unordered_set<T>> : codec_detail::SetCodec<std::unordered_set<T>> {};

template <class T>
struct Codec<std::optional<T>> {
  static void encode(Encoder& encoder, const std::optional<T>& value) {
    Codec<bool>::encode(encoder, value.has_value());
    if (value) encode_value(encoder, *value);
  }
  static void decode(Decoder& decoder, std::optional<T>& value) {
    value.reset();
    if (decoder.read_bool()) decode_value(decoder, value.emplace());
  }
};

template <>
struct Codec<std::monostate> {
  static void encode(Encoder& encoder, std::monostate) { encoder.write<std::uint8_t>(0); }
  static void decode(Decoder& decoder, std::monostate&) { decoder.read<std::uint8_t>(); }
};

template <class... T>
struct Codec<std::variant<T...>> {
  static_assert(sizeof...(T) < 128);
  static void encode(Encoder& encoder, const std::variant<T...>& value) {
    encoder.write(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& held) { encode_value(encoder, held); }, value);
  }
  static void decode(Decoder& decoder, std::variant<T...>& value) {
    auto index = decoder.read<std::uint8_t>();
    if (index >= sizeof...(T))
      return decoder.fail("a variant without alternative " + std::to_string(index));
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == index ? decode_value(decoder, value.template emplace<I>()) : void()), ...);
    }
    (std::index_sequence_for<T...>());
  }
};

template <class Rep, class Period>
struct Codec<std::chrono::duration<Rep, Period>> {
  using Duration = std::chrono::duration<Rep, Period>;
  static void encode(Encoder& encoder, Duration value) { encode_value(encoder, value.count()); }
  static void decode(Decoder& decoder, Duration& value) { value = Duration(decoder.read<Rep>()); }
};

template <class Tag>
struct Codec<Id<Tag>> {
  static void encode(Encoder& encoder, const Id<Tag>& id) {
    encoder.write_raw(std::as_bytes(std::span(id.bytes)));
  }
  static void decode(Decoder& decoder, Id<Tag>& id) {
    auto raw = decoder.read_raw(id.bytes.size());
    if (!raw.empty()) std::memcpy(id.bytes.data(), raw.data(), raw.size());
  }
};

template <>
struct Codec<Status> {
  static void encode(Encoder& encoder, const Status& status) {
    encoder.write(status.code());
    encoder.write_text(status.message());
  }
  static void decode(Decoder& decoder, Status& status) {
    auto code = decoder.read<std::uint16_t>();
    std::string message(decoder.read_text());
    status = code == 0 ? Status() : Status(error_code_from_wire(code), std::move(message));
  }
};

template <HasFields T>
struct Codec<T> {
  static void encode(Encoder& encoder, const T& value) {
    codec_detail::encode_tuple(encoder, const_cast<T&>(value).fields());
  }
  static void decode(Decoder& decoder, T& value) {
    if (decoder.enter()) codec_detail::decode_tuple(decoder, value.fields());
    decoder.leave();
  }
};

}  // namespace runtime
