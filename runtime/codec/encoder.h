// Encoder: values to bytes. The format is fixed-width little-endian numbers, variable-length
// counts, and arrays of arithmetic types aligned so that a reader can use them in place.
// docs/wire.md has the grammar.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/codec/fwd.h"
#include "runtime/transport/buffer.h"

namespace runtime {

static_assert(std::endian::native == std::endian::little,
              "values travel in little-endian order without conversion");

/// Arrays of at least this many bytes are borrowed by the encoder instead of copied, and start at a
/// multiple of 64 in the encoding. They make the whole value worth a place in shared memory.
inline constexpr std::size_t kLargeArrayBytes = 64 << 10;

/// The target of a reference in a value. The codec passes it on and does not look into it; each is
/// an ObjectState (runtime/call/object_state.h).
class Referent {
 protected:
  Referent() = default;
  ~Referent() = default;
};

/// Collects the encoding of one value or argument list. Large arrays are borrowed: what was encoded
/// must live unchanged until to_buffer() or gather(). References to objects go to a table next to
/// the bytes; the bytes hold their index.
class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void write(T value) {
    std::memcpy(extend(sizeof value), &value, sizeof value);
  }
  /// A count, in one byte when below 128.
  void write_length(std::uint64_t length);
  void write_raw(std::span<const std::byte> bytes);
  void write_text(std::string_view text);
  /// `count` elements of `element_bytes` each, behind their count; found again by
  /// Decoder::read_array.
  void write_array(const void* data, std::size_t count, std::size_t element_bytes);
  void write_ref(ReferentPtr ref);

  /// Bytes of the whole encoding.
  std::size_t size() const { return size_; }
  /// The references met, in order of their index.
  const std::vector<ReferentPtr>& refs() const { return refs_; }
  std::vector<ReferentPtr> take_refs() { return std::move(refs_); }

  /// Copies the encoding to `out`, of size() bytes.
  void gather(std::span<std::byte> out) const;
  /// A copy that owns its bytes.
  Buffer to_buffer() const;

 private:
  struct Block {
    std::size_t position;  // in the own bytes: where the block belongs
    std::span<const std::byte> bytes;
  };

  std::byte* extend(std::size_t bytes);
  void pad_to(std::size_t alignment);

  static constexpr std::size_t kInPlaceBytes = 256;

  std::array<std::byte, kInPlaceBytes> in_place_;  // most calls need no allocation
  std::vector<std::byte> spilled_;                 // all own bytes once they outgrow in_place_
  std::size_t own_size_ = 0;
  std::size_t size_ = 0;
  std::vector<Block> blocks_;
  std::vector<ReferentPtr> refs_;
};

inline std::byte* Encoder::extend(std::size_t bytes) {
  std::size_t at = own_size_;
  own_size_ += bytes;
  size_ += bytes;
  if (spilled_.empty() && own_size_ <= kInPlaceBytes) return in_place_.data() + at;
  if (spilled_.empty())
    spilled_.assign(in_place_.begin(), in_place_.begin() + static_cast<std::ptrdiff_t>(at));
  if (spilled_.capacity() < own_size_) spilled_.reserve(2 * own_size_);
  spilled_.resize(own_size_);
  return spilled_.data() + at;
}

}  // namespace runtime
