// Just enough of protocol buffers' encoding to write the logs of other programs;
// https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace rl {

/// A message as bytes, field after field in the order of the calls.
class ProtobufMessage {
 public:
  /// int32, int64, uint64, bool and enum fields.
  ProtobufMessage& integer(int field, std::int64_t value) {
    return key(field, 0).varint(static_cast<std::uint64_t>(value));
  }
  ProtobufMessage& real(int field, double value) {
    return key(field, 1).fixed(std::bit_cast<std::uint64_t>(value));
  }
  ProtobufMessage& real(int field, float value) {
    return key(field, 5).fixed(std::bit_cast<std::uint32_t>(value));
  }
  ProtobufMessage& text(int field, std::string_view value) {
    key(field, 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtobufMessage& message(int field, const ProtobufMessage& value) {
    return text(field, value.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  ProtobufMessage& key(int field, int type) {
    return varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
  }
  ProtobufMessage& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <class T>
  ProtobufMessage& fixed(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

}  // namespace rl
