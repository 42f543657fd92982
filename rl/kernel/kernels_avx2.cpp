// The kernels for AVX2 with FMA. Everything from the pragma on is compiled for it, so what is
// included before must be whole already. No inline function of a shared header may be compiled with
// instructions that another machine lacks.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "rl/kernel/kernel_table.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wunknown-pragmas"
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#include "rl/kernel/lanes_avx2.h"
#include "rl/kernel/make_table.h"

namespace rl::kernel {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable kTable = make_table<Avx2Lanes>();
  return kTable;
}

}  // namespace rl::kernel

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else

namespace rl::kernel {
const KernelTable& avx2_kernels() { return portable_kernels(); }
}  // namespace rl::kernel

#endif
