#include "runtime/call/object_view.h"

#include <new>

namespace runtime::view_detail {

Buffer aligned(Buffer bytes) {
  if (bytes.size() == 0 || reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0)
    return bytes;
  const auto alignment = std::align_val_t(kAlignment);
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(::operator new(bytes.size(), alignment)),
                                  [alignment](std::byte* at) { ::operator delete(at, alignment); });
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const std::span<const std::byte> whole(copy.get(), bytes.size());
  return Buffer(whole, std::move(copy));
}

}  // namespace runtime::view_detail
