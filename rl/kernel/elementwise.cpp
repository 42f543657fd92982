#include "rl/kernel/elementwise.h"

#include <algorithm>

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {
namespace {

constexpr std::int64_t kElementsPerRange = 16 << 10;  // a multiple of the 16 lanes

}  // namespace

void activate(ThreadPool& pool, Activation activation, const float* gate, const float* up,
              std::int64_t count, float* y) {
  const auto kernel = kernels().activate;
  pool.parallel_for(count, kElementsPerRange, [&](std::int64_t begin, std::int64_t end) {
    kernel(activation, gate + begin, up == nullptr ? nullptr : up + begin, end - begin, y + begin);
  });
}

void activate_backward(Activation activation, const ActivatedGradient& gradient) {
  kernels().activate_backward(activation, gradient);
}

void softcap(ThreadPool& pool, const float* x, std::int64_t count, float cap, float* y) {
  const auto kernel = kernels().softcap;
  pool.parallel_for(count, kElementsPerRange, [&](std::int64_t begin, std::int64_t end) {
    kernel(x + begin, end - begin, cap, y + begin);
  });
}

void exp(ThreadPool& pool, const float* x, std::int64_t count, float* y) {
  const auto kernel = kernels().exp;
  pool.parallel_for(count, kElementsPerRange, [&](std::int64_t begin, std::int64_t end) {
    kernel(x + begin, end - begin, y + begin);
  });
}

void add(ThreadPool& pool, const float* a, const float* b, std::int64_t count, float* y) {
  const auto kernel = kernels().add;
  pool.parallel_for(count, kElementsPerRange, [&](std::int64_t begin, std::int64_t end) {
    kernel(a + begin, b + begin, end - begin, y + begin);
  });
}

void gather_rows(ThreadPool& pool, const float* table, std::int64_t size, const std::int32_t* ids,
                 std::int64_t rows, float* y) {
  pool.parallel_for(rows, 1 + kElementsPerRange / size, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      std::copy_n(table + ids[r] * size, size, y + r * size);
  });
}

}  // namespace rl::kernel
