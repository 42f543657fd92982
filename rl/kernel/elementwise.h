// Element-by-element functions.
#pragma once

#include <cstdint>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// y = silu(gate) * up = gate / (1 + exp(-gate)) * up, [count]; y may be gate or up.
void silu_mul(ThreadPool& pool, const float* gate, const float* up, std::int64_t count, float* y);

/// y = exp(x), [count], in place allowed. Relative error below 2e-7; 0 below -104, infinity above 88.73, NaN stays NaN.
void exp(ThreadPool& pool, const float* x, std::int64_t count, float* y);

/// y = a + b, [count]; y may be a or b.
void add(ThreadPool& pool, const float* a, const float* b, std::int64_t count, float* y);

/// y[r] = table[ids[r]], rows of `size` elements. Ids must be inside the table.
void gather_rows(ThreadPool& pool, const float* table, std::int64_t size, const std::int32_t* ids, std::int64_t rows, float* y);

}  // namespace rl::kernel
