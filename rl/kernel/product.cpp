#include "rl/kernel/product.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {
namespace {

struct Freed {
  void operator()(float* memory) const { std::free(memory); }
};

// What factors are packed into, on cache lines.
std::unique_ptr<float, Freed> packing_memory() {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kBytes = sizeof(float) * (kProductRows + kProductColumns) * kProductStretch;
  static_assert(kBytes % kLine == 0);
  auto* memory = static_cast<float*>(std::aligned_alloc(kLine, kBytes));
  if (memory == nullptr) throw std::bad_alloc();
  return std::unique_ptr<float, Freed>(memory);
}

}  // namespace

void multiply(const Product& product) {
  if (product.rows == 0 || product.columns == 0) return;
  if (product.depth == 0) {
    if (product.adds) return;
    for (std::int64_t row = 0; row < product.rows; ++row)
      std::fill_n(product.c + row * product.c_stride, product.columns, 0.0F);
    return;
  }
  thread_local const std::unique_ptr<float, Freed> packed = packing_memory();
  kernels().multiply(product, packed.get());
}

}  // namespace rl::kernel
