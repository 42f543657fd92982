// Buffer and Payload: immutable bytes with shared ownership. Slices of a received block, of shared
// memory or of a caller's vector all travel without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace runtime {

/// Immutable bytes and what keeps them alive. A value: copying shares the bytes. Cost of a copy:
/// one atomic increment.
class Buffer {
 public:
  Buffer() = default;
  /// Bytes that `owner` keeps alive.
  Buffer(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  /// A fresh copy of `bytes`, aligned to 16.
  static Buffer copy_of(std::span<const std::byte> bytes);
  static Buffer copy_of(std::string_view text) {
    return copy_of(std::as_bytes(std::span(text.data(), text.size())));
  }

  /// A fresh block of `size` uninitialised bytes, aligned to 64 from 4 KiB on and to 16 below. Fill
  /// it in at `*writable` before the buffer is shared.
  static Buffer allocate(std::size_t size, std::byte** writable);

  /// Takes over a vector of trivially copyable elements (or a string) without copying it.
  template <class Container>
  static Buffer adopt(Container container) {
    auto owner = std::make_shared<const Container>(std::move(container));
    auto bytes = std::as_bytes(std::span(owner->data(), owner->size()));
    return Buffer(bytes, std::move(owner));
  }

  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  /// A part of the same bytes; `offset + size` must lie inside.
  Buffer slice(std::size_t offset, std::size_t size) const {
    return {bytes_.subspan(offset, size), owner_};
  }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

/// The raw bytes of a frame, in one or more pieces. What a channel delivers is always one piece,
/// aligned to 8.
class Payload {
 public:
  Payload() = default;
  Payload(Buffer piece)
      : first_(std::move(piece)) {
  }  // NOLINT(google-explicit-constructor): one piece is the usual case

  void add(Buffer piece) {
    if (first_.empty())
      first_ = std::move(piece);
    else
      more_.push_back(std::move(piece));
  }

  std::size_t size() const {
    std::size_t total = first_.size();
    for (const Buffer& piece : more_) total += piece.size();
    return total;
  }
  bool empty() const { return size() == 0; }

  const Buffer& first() const { return first_; }
  std::span<const Buffer> more() const { return more_; }

  /// All bytes as one buffer: the piece itself if there is one, else a copy.
  Buffer flatten() const;

 private:
  Buffer first_;
  std::vector<Buffer> more_;
};

}  // namespace runtime
