#include "rl/kernel/norm.h"

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {

void rms_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t size,
              const float* weight, float eps, float* y, float* inverse_rms) {
  const auto row_kernel = kernels().rms_norm;
  const std::int64_t grain = 1 + (32 << 10) / size;
  pool.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float inverse = row_kernel(x + r * size, size, weight, eps, y + r * size);
      if (inverse_rms != nullptr) inverse_rms[r] = inverse;
    }
  });
}

void layer_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t size,
                const float* weight, const float* bias, float eps, float* y, float* moments) {
  const auto row_kernel = kernels().layer_norm;
  const std::int64_t grain = 1 + (32 << 10) / size;
  pool.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      row_kernel(x + r * size, size, weight, bias, eps, y + r * size,
                 moments == nullptr ? nullptr : moments + 2 * r);
    }
  });
}

}  // namespace rl::kernel
