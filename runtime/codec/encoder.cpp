#include "runtime/codec/encoder.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace runtime {

void Encoder::write_length(std::uint64_t length) {
  while (length >= 0x80) {
    write(static_cast<std::uint8_t>(length | 0x80));
    length >>= 7;
  }
  write(static_cast<std::uint8_t>(length));
}

void Encoder::write_raw(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
}

void Encoder::write_text(std::string_view text) {
  write_length(text.size());
  write_raw(std::as_bytes(std::span(text.data(), text.size())));
}

void Encoder::pad_to(std::size_t alignment) {
  std::size_t padding = (alignment - size_ % alignment) % alignment;
  if (padding > 0) std::memset(extend(padding), 0, padding);
}

void Encoder::write_array(const void* data, std::size_t count, std::size_t element_bytes) {
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data), count * element_bytes);
  pad_to(8);
  write(static_cast<std::uint64_t>(count));
  if (bytes.size() < kLargeArrayBytes) return write_raw(bytes);
  pad_to(64);
  blocks_.push_back({own_size_, bytes});
  size_ += bytes.size();
}

void Encoder::write_ref(ReferentPtr ref) {
  write_length(refs_.size());
  refs_.push_back(std::move(ref));
}

void Encoder::gather(std::span<std::byte> out) const {
  CHECK(out.size() == size_);
  const std::byte* own = spilled_.empty() ? in_place_.data() : spilled_.data();
  std::byte* to = out.data();
  std::size_t copied = 0;  // of the own bytes
  auto copy_own_until = [&](std::size_t end) {
    if (end > copied) std::memcpy(to, own + copied, end - copied);
    to += end - copied;
    copied = end;
  };
  for (const Block& block : blocks_) {
    copy_own_until(block.position);
    std::memcpy(to, block.bytes.data(), block.bytes.size());
    to += block.bytes.size();
  }
  copy_own_until(own_size_);
}

Buffer Encoder::to_buffer() const {
  if (size_ == 0) return {};
  std::byte* out = nullptr;
  Buffer buffer = Buffer::allocate(size_, &out);
  gather({out, size_});
  return buffer;
}

}  // namespace runtime
