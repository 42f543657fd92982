#include "rl/kernel/int8.h"

#include "rl/kernel/kernel_table.h"

namespace rl::kernel {
namespace {

constexpr std::int64_t kRangeWeights = 256 << 10;

std::int64_t rows_per_range(std::int64_t in) {
  return in >= kRangeWeights ? 1 : kRangeWeights / in;
}

}  // namespace

void quantize_int8(ThreadPool& pool, const float* weight, std::int64_t out, std::int64_t in,
                   std::int8_t* values, float* scales) {
  const KernelTable& table = kernels();
  pool.parallel_for(out, rows_per_range(in), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      table.quantize_int8(weight + o * in, in, values + o * int8_stride(in),
                          scales + o * int8_groups(in));
  });
}

void dequantize_int8(ThreadPool& pool, const Int8Weight& weight, std::int64_t out, std::int64_t in,
                     float* dense) {
  const KernelTable& table = kernels();
  pool.parallel_for(out, rows_per_range(in), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      table.dequantize_int8(weight.from(o, in), in, dense + o * in);
  });
}

}  // namespace rl::kernel
