// Decoder: bytes to values. The bytes come from outside and may be anything. Every read is bounded
// by what is there. The first error sticks, and reads after it give zeros, so that a codec needs no
// own check except in loops.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/codec/encoder.h"
#include "runtime/codec/fwd.h"
#include "runtime/core/status.h"
#include "runtime/transport/buffer.h"

namespace runtime {

/// How deep structs that contain themselves (trees) may nest.
inline constexpr int kDecodeDepthMax = 100;

/// What decoded handles belong to. The codec passes it on and does not look into it; each is an
/// ObjectContext (runtime/call/object_context.h).
class DecodeContext {
 protected:
  DecodeContext() = default;
  ~DecodeContext() = default;
};

/// A view of the table that the references of a value point into.
class ReferenceTable {
 public:
  ReferenceTable() = default;
  template <std::derived_from<Referent> R>
  ReferenceTable(const std::vector<std::shared_ptr<R>>& table)
      : first_(table.data()), size_(table.size()), read_(&read<R>) {}

  std::size_t size() const { return size_; }
  /// `index` is below size().
  ReferentPtr operator[](std::size_t index) const { return read_(first_, index); }

 private:
  template <class R>
  static ReferentPtr read(const void* first, std::size_t index) {
    return static_cast<const std::shared_ptr<R>*>(first)[index];
  }

  const void* first_ = nullptr;
  std::size_t size_ = 0;
  ReferentPtr (*read_)(const void* first, std::size_t index) = nullptr;
};

class Decoder {
 public:
  /// Decodes `bytes`. `refs` is the table that the encoding's references point into. `context` is
  /// that of decoded handles, and may be null when there are none.
  explicit Decoder(Buffer bytes, ReferenceTable refs = {}, DecodeContextPtr context = nullptr);
  ~Decoder();

  bool ok() const { return error_.empty(); }
  /// Records why these bytes are malformed; the first reason counts.
  void fail(std::string why);
  /// kInvalidArgument when something was malformed or bytes are left over.
  Status finish();

  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T read() {
    T value{};
    std::span<const std::byte> raw = read_raw(sizeof value);
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  bool read_bool();
  /// A count of elements that take at least one byte each: never more than there are bytes left.
  std::size_t read_length();
  /// Exactly `size` bytes, or none after an error.
  std::span<const std::byte> read_raw(std::size_t size);
  std::string_view read_text();
  /// The elements of an array written with write_array; a view into the decoded bytes. The start is
  /// aligned as it was in the encoding.
  std::span<const std::byte> read_array(std::size_t element_bytes);
  /// Null after an error.
  ReferentPtr read_ref();

  /// Nesting of structs; refuses what is too deep.
  bool enter();
  void leave() { --depth_; }

  /// Keeps views into the bytes alive.
  const std::shared_ptr<const void>& owner() const { return bytes_.owner(); }
  const DecodeContextPtr& context() const { return context_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

 private:
  void skip_padding(std::size_t alignment);

  Buffer bytes_;
  std::size_t position_ = 0;
  ReferenceTable refs_;
  DecodeContextPtr context_;
  int depth_ = 0;
  std::string error_;
};

}  // namespace runtime
