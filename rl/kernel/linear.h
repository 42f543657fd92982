// Matrix products with row-major weights, as Hugging Face stores them.
// Shapes: R rows, I inputs, O outputs.
#pragma once

#include <cstdint>
#include <span>

#include "rl/kernel/int8.h"
#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// One product of a call to `linear`: y[r, o] = sum_i x[r, i] * weight[o, i] (+ bias[o]).
struct LinearOutput {
  const float* weight = nullptr;  // [O, I], dense
  Int8Weight int8 = {};  // [O, I]; where there is one it stands for the weight, and the result has
                         // the bits of its dequantize_int8()
  const float* bias = nullptr;  // [O] or null; added last
  std::int64_t out = 0;         // O
  float* y = nullptr;           // [R, O]
  std::int64_t y_stride = 0;    // elements between rows of y; 0 means O
};

/// Several products of the same rows, in one parallel loop (q, k and v; gate and up). x is [rows,
/// in] with `x_stride` elements between rows (0: dense). No output may overlap x. Cost: at one row
/// the time to stream the weights from memory (in 8 bits: 0.27 of it). From 16 rows on it is close
/// to the peak of the FMA units.
void linear(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t in,
            std::int64_t x_stride, std::span<const LinearOutput> outputs);

/// One dense product.
inline void linear(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t in,
                   const float* weight, const float* bias, std::int64_t out, float* y) {
  const LinearOutput output{.weight = weight, .bias = bias, .out = out, .y = y, .y_stride = out};
  linear(pool, x, rows, in, 0, std::span(&output, 1));
}

}  // namespace rl::kernel
