#include "rl/kernel/linear.h"

#include <algorithm>
#include <vector>

#include "rl/kernel/kernel_table.h"
#include "runtime/core/check.h"

namespace rl::kernel {
namespace {

// Rows whose inputs together stay in half of a second-level cache of 1 MiB while the weights pass
// by.
constexpr std::int64_t kRowBlockFloats = 128 << 10;
// A range of work is about this many multiply-adds (some 50 us) and, when memory is the limit, this
// many weights. It is small enough to balance the threads and large enough to stream.
constexpr std::int64_t kRangeProducts = 2 << 20;
constexpr std::int64_t kRangeWeightsMin = 12 << 10;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

void linear(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t in,
            std::int64_t x_stride, std::span<const LinearOutput> outputs) {
  if (rows == 0) return;
  CHECK(in > 0);
  const KernelTable& table = kernels();
  const std::int64_t row_block = std::max<std::int64_t>(8, kRowBlockFloats / in / 8 * 8);
  const std::int64_t row_blocks = (rows + row_block - 1) / row_block;
  const std::int64_t block_rows = std::min(rows, row_block);
  std::int64_t total = 0;
  for (const LinearOutput& output : outputs) total += output.out;
  // At least a few ranges per thread, then no larger than kRangeProducts.
  const std::int64_t fair = total * row_blocks / (pool.threads() * 4);
  const std::int64_t outputs_per_range = round_up(
      std::max(kRangeWeightsMin / in,
               std::min(kRangeProducts / (in * block_rows), std::max<std::int64_t>(fair, 1))),
      kLinearGroup);
  std::int64_t ranges = 0;  // per row block
  for (const LinearOutput& output : outputs)
    ranges += (output.out + outputs_per_range - 1) / outputs_per_range;

  pool.parallel_for(ranges * row_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<float> scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / ranges * row_block;
      std::int64_t range = i % ranges;
      for (const LinearOutput& output : outputs) {
        const std::int64_t own = (output.out + outputs_per_range - 1) / outputs_per_range;
        if (range >= own) {
          range -= own;
          continue;
        }
        const std::int64_t first = range * outputs_per_range;
        const std::int64_t y_stride = output.y_stride == 0 ? output.out : output.y_stride;
        const std::int64_t stride = x_stride == 0 ? in : x_stride;
        if (output.int8 && scratch.size() < static_cast<std::size_t>(kLinearGroup * in))
          scratch.resize(static_cast<std::size_t>(kLinearGroup * in));
        table.linear({.x = x + row * stride,
                      .rows = std::min(row_block, rows - row),
                      .in = in,
                      .x_stride = stride,
                      .weight = output.int8 ? nullptr : output.weight + first * in,
                      .int8 = output.int8.from(first, in),
                      .bias = output.bias == nullptr ? nullptr : output.bias + first,
                      .out = std::min(outputs_per_range, output.out - first),
                      .y = output.y + row * y_stride + first,
                      .y_stride = y_stride,
                      .scratch = scratch.data()});
        break;
      }
    }
  });
}

}  // namespace rl::kernel
