#include "runtime/transport/buffer.h"

#include <cstring>
#include <new>

namespace runtime {

namespace {

constexpr std::size_t kPageBytes = 4096;

struct AlignedDelete {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t(64)); }
};

}  // namespace

Buffer Buffer::copy_of(std::span<const std::byte> bytes) {
  std::byte* writable = nullptr;
  Buffer copy = allocate(bytes.size(), &writable);
  if (!bytes.empty()) std::memcpy(writable, bytes.data(), bytes.size());
  return copy;
}

Buffer Buffer::allocate(std::size_t size, std::byte** writable) {
  if (size < kPageBytes) {
    // One allocation holds the count and the bytes.
    struct alignas(16) Unit {
      std::byte bytes[16];
    };
    auto block = std::make_shared_for_overwrite<Unit[]>((size + 15) / 16);
    *writable = block.get()->bytes;
    return Buffer({*writable, size}, std::move(block));
  }
  std::shared_ptr<std::byte> block(
      static_cast<std::byte*>(::operator new[](size, std::align_val_t(64))), AlignedDelete{});
  *writable = block.get();
  return Buffer({*writable, size}, std::move(block));
}

Buffer Payload::flatten() const {
  if (more_.empty()) return first_;
  std::byte* writable = nullptr;
  Buffer whole = Buffer::allocate(size(), &writable);
  auto append = [&writable](const Buffer& piece) {
    if (!piece.empty()) std::memcpy(writable, piece.data(), piece.size());
    writable += piece.size();
  };
  append(first_);
  for (const Buffer& piece : more_) append(piece);
  return whole;
}

}  // namespace runtime
