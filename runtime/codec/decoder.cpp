#include "runtime/codec/decoder.h"

namespace runtime {

Decoder::Decoder(Buffer bytes, ReferenceTable refs, DecodeContextPtr context)
    : bytes_(std::move(bytes)), refs_(refs), context_(std::move(context)) {}

Decoder::~Decoder() = default;

void Decoder::fail(std::string why) {
  if (!error_.empty()) return;
  error_ = std::move(why);
  error_ += " at byte " + std::to_string(position_) + " of " + std::to_string(bytes_.size());
  position_ = bytes_.size();
}

Status Decoder::finish() {
  if (ok() && remaining() > 0) fail(std::to_string(remaining()) + " bytes too many");
  return ok() ? Status() : invalid_argument("malformed value: " + error_);
}

std::span<const std::byte> Decoder::read_raw(std::size_t size) {
  if (size > remaining()) {
    fail("value ends early");
    return {};
  }
  auto raw = bytes_.bytes().subspan(position_, size);
  position_ += size;
  return raw;
}

bool Decoder::read_bool() {
  auto value = read<std::uint8_t>();
  if (value > 1) fail("a bool that is neither 0 nor 1");
  return value == 1;
}

std::size_t Decoder::read_length() {
  std::uint64_t length = 0;
  for (int shift = 0;; shift += 7) {
    auto byte = read<std::uint8_t>();
    if (!ok()) return 0;
    if (shift == 63 && byte > 1) {
      fail("a count that does not fit 64 bits");
      return 0;
    }
    length |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  if (length > remaining()) {
    fail("a count of " + std::to_string(length) + " with " + std::to_string(remaining()) +
         " bytes left");
    return 0;
  }
  return length;
}

std::string_view Decoder::read_text() {
  auto raw = read_raw(read_length());
  return {reinterpret_cast<const char*>(raw.data()), raw.size()};
}

void Decoder::skip_padding(std::size_t alignment) {
  read_raw((alignment - position_ % alignment) % alignment);
}

std::span<const std::byte> Decoder::read_array(std::size_t element_bytes) {
  skip_padding(8);
  auto count = read<std::uint64_t>();
  if (!ok()) return {};
  if (count > remaining() / element_bytes) {
    fail("an array of " + std::to_string(count) + " elements with " + std::to_string(remaining()) +
         " bytes left");
    return {};
  }
  std::size_t bytes = count * element_bytes;
  if (bytes >= kLargeArrayBytes) skip_padding(64);
  return read_raw(bytes);
}

ReferentPtr Decoder::read_ref() {
  std::uint64_t index = 0;
  // Not read_length(): an index is not bounded by the bytes behind it.
  for (int shift = 0; shift < 35; shift += 7) {
    auto byte = read<std::uint8_t>();
    index |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  if (!ok()) return nullptr;
  if (index >= refs_.size()) {
    fail("object reference " + std::to_string(index) + " of " + std::to_string(refs_.size()));
    return nullptr;
  }
  return refs_[index];
}

bool Decoder::enter() {
  if (++depth_ > kDecodeDepthMax) fail("nested deeper than " + std::to_string(kDecodeDepthMax));
  return ok();
}

}  // namespace runtime
