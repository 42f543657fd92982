// Private to rl/kernel: the inner loops of one instruction set, as pointers. Every function here
// runs on one thread; the public functions split the work.
#pragma once

#include <cstdint>

#include "rl/kernel/attention.h"
#include "rl/kernel/elementwise.h"
#include "rl/kernel/int8.h"
#include "rl/kernel/isa.h"
#include "rl/kernel/product.h"

namespace rl::kernel {

/// `rows` x [output_begin, output_end) of one product; see linear.h.
struct LinearBlock {
  const float* x = nullptr;
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t x_stride = 0;
  const float* weight = nullptr;  // of output_begin
  Int8Weight int8 = {};           // of output_begin; instead of weight where there is one
  const float* bias = nullptr;    // of output_begin, or null
  std::int64_t out = 0;           // outputs in this block
  float* y = nullptr;             // row 0, output_begin
  std::int64_t y_stride = 0;
  float* scratch = nullptr;  // [kLinearGroup, in], for int8
};

/// Outputs that the rows go through together: a multiple of every tile's width.
inline constexpr std::int64_t kLinearGroup = 24;

/// Queries [query_begin, query_end) of one sequence against one key/value head; see attention.h.
struct AttentionBlock {
  const AttentionShape* shape = nullptr;
  const AttentionSequence* sequence = nullptr;
  const float* q = nullptr;
  std::int64_t q_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  float* log_normalizer = nullptr;
  std::int64_t kv_head = 0;
  std::int64_t query_begin = 0;
  std::int64_t query_end = 0;
  float* scratch = nullptr;  // [kAttentionRows, keys rounded up to kAttentionChunk]
};

/// Rows (a query and one of its heads) that are worked on together.
inline constexpr std::int64_t kAttentionRows = 8;

/// Maximum, sum of exp(z - maximum) and sum of exp(z - maximum) * (z - maximum) for z = logits *
/// scale.
struct SoftmaxSums {
  float maximum = 0;
  float sum = 0;
  float weighted = 0;
};

/// Rows and columns of a product whose factors are packed at a time: they stay in the second-level
/// cache.
inline constexpr std::int64_t kProductRows = 144;
inline constexpr std::int64_t kProductColumns = 768;

struct KernelTable {
  void (*linear)(const LinearBlock& block);
  void (*quantize_int8)(const float* weight, std::int64_t in, std::int8_t* values,
                        float* scales);                                           // one row
  void (*dequantize_int8)(const Int8Weight& row, std::int64_t in, float* dense);  // one row
  void (*attention)(const AttentionBlock& block);
  float (*rms_norm)(const float* x, std::int64_t size, const float* weight, float eps,
                    float* y);  // one row; returns 1 / rms
  void (*layer_norm)(const float* x, std::int64_t size, const float* weight, const float* bias,
                     float eps, float* y, float* moments);  // one row
  void (*rope_head)(const float* x, std::int64_t half, const float* cos, const float* sin,
                    float* y);
  void (*activate)(Activation activation, const float* gate, const float* up, std::int64_t count,
                   float* y);
  void (*activate_backward)(Activation activation, const ActivatedGradient& gradient);
  void (*softcap)(const float* x, std::int64_t count, float cap, float* y);
  void (*exp)(const float* x, std::int64_t count, float* y);
  void (*add)(const float* a, const float* b, std::int64_t count, float* y);
  SoftmaxSums (*softmax_sums)(const float* logits, std::int64_t count, float scale);
  /// `packed`: (kProductRows + kProductColumns) * kProductStretch, on a cache line.
  void (*multiply)(const Product& product, float* packed);
};

const KernelTable& portable_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();

/// The table of current_isa().
const KernelTable& kernels();

}  // namespace rl::kernel
