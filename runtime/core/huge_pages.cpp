#include "runtime/core/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace runtime {

namespace {

constexpr std::uintptr_t kHugePageBytes = 2 << 20;
// With less, the ends that no huge page covers are too large a part to matter.
constexpr std::size_t kWorthwhileBytes = 4 * kHugePageBytes;

}  // namespace

void prefer_huge_pages(void* data, std::size_t bytes) {
  if (bytes < kWorthwhileBytes) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + kHugePageBytes - 1) /
                     kHugePageBytes * kHugePageBytes;
  const auto end =
      (reinterpret_cast<std::uintptr_t>(data) + bytes) / kHugePageBytes * kHugePageBytes;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace runtime
