// Values as bytes: what the ranks of a team tell one another about a pass.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/codec/codec.h"

namespace rl {

template <class... T>
std::vector<std::byte> encode_values(const T&... values) {
  runtime::Encoder encoder;
  (runtime::encode_value(encoder, values), ...);
  std::vector<std::byte> bytes(encoder.size());
  encoder.gather(bytes);
  return bytes;
}

/// kInvalidArgument: bytes that encode_values() of such values did not give.
template <class... T>
runtime::Status decode_values(std::span<const std::byte> bytes, T&... values) {
  runtime::Decoder decoder(runtime::Buffer::copy_of(bytes));
  (runtime::decode_value(decoder, values), ...);
  return decoder.finish();
}

}  // namespace rl
