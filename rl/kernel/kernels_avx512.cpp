// The kernels for AVX-512. Everything from the pragma on is compiled for it, so what is included
// before must be whole already. No inline function of a shared header may be compiled with
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
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
// g++ 12 warns about the undefined sources inside its own intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#endif

#include "rl/kernel/lanes_avx512.h"
#include "rl/kernel/make_table.h"

namespace rl::kernel {

const KernelTable& avx512_kernels() {
  static constexpr KernelTable kTable = make_table<Avx512Lanes>();
  return kTable;
}

}  // namespace rl::kernel

#if defined(__clang__)
#pragma clang attribute pop
#endif
#else

namespace rl::kernel {
const KernelTable& avx512_kernels() { return portable_kernels(); }
}  // namespace rl::kernel

#endif
