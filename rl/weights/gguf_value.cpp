// The values of gguf.h: conversion between widths, and decoding of arrays from the mapped bytes.
#include <bit>
#include <cmath>
#include <cstring>

#include "rl/weights/gguf.h"
#include "rl/weights/gguf_scalar.h"

namespace rl {

namespace {

std::optional<std::int64_t> to_integer(const GgufValue::Storage& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const auto* u = std::get_if<std::uint64_t>(&value); u != nullptr && *u <= INT64_MAX)
    return static_cast<std::int64_t>(*u);
  return std::nullopt;
}

std::optional<double> to_number(const GgufValue::Storage& value) {
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  return std::nullopt;
}

// All elements through `convert`; nullopt as soon as one does not convert. The parser has checked
// that the bytes suffice.
template <class T, class Convert>
std::optional<std::vector<T>> decode(GgufType type, std::uint64_t count,
                                     std::span<const std::byte> bytes, Convert convert) {
  const std::size_t width = gguf_scalar_bytes(type);
  if (width == 0) return std::nullopt;  // strings and arrays
  std::vector<T> result;
  result.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::optional<T> element = convert(decode_gguf_scalar(type, bytes.data() + i * width));
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  switch (type) {
    case GgufType::kU8: return "u8";
    case GgufType::kI8: return "i8";
    case GgufType::kU16: return "u16";
    case GgufType::kI16: return "i16";
    case GgufType::kU32: return "u32";
    case GgufType::kI32: return "i32";
    case GgufType::kF32: return "f32";
    case GgufType::kBool: return "bool";
    case GgufType::kString: return "string";
    case GgufType::kArray: return "array";
    case GgufType::kU64: return "u64";
    case GgufType::kI64: return "i64";
    case GgufType::kF64: return "f64";
  }
  return "unknown";
}

std::size_t gguf_scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  return 0;
}

GgufValue::Storage decode_gguf_scalar(GgufType type, const std::byte* bytes) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, bytes, gguf_scalar_bytes(type));
  switch (type) {
    case GgufType::kI8: return std::int64_t{static_cast<std::int8_t>(raw)};
    case GgufType::kI16: return std::int64_t{static_cast<std::int16_t>(raw)};
    case GgufType::kI32: return std::int64_t{static_cast<std::int32_t>(raw)};
    case GgufType::kI64: return static_cast<std::int64_t>(raw);
    case GgufType::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(raw)));
    case GgufType::kF64: return std::bit_cast<double>(raw);
    case GgufType::kBool: return raw != 0;
    default: return raw;
  }
}

std::optional<std::vector<std::string_view>> GgufArray::strings() const {
  if (element_type_ != GgufType::kString) return std::nullopt;
  std::vector<std::string_view> result;
  result.reserve(count_);
  const std::byte* at = bytes_.data();
  for (std::uint64_t i = 0; i < count_; ++i) {
    std::uint64_t length;
    std::memcpy(&length, at, sizeof(length));
    result.emplace_back(reinterpret_cast<const char*>(at + sizeof(length)), length);
    at += sizeof(length) + length;
  }
  return result;
}

std::optional<std::vector<std::int64_t>> GgufArray::integers() const {
  return decode<std::int64_t>(element_type_, count_, bytes_, to_integer);
}

std::optional<std::vector<double>> GgufArray::numbers() const {
  return decode<double>(element_type_, count_, bytes_, to_number);
}

std::optional<std::int64_t> GgufValue::as_integer() const {
  return type_ == GgufType::kBool ? std::nullopt : to_integer(value_);
}

std::optional<double> GgufValue::as_number() const { return to_number(value_); }

std::optional<bool> GgufValue::as_bool() const {
  const auto* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string_view> GgufValue::as_string() const {
  const auto* value = std::get_if<std::string_view>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

}  // namespace rl
