// Normalisation of rows.
#pragma once

#include <cstdint>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// y[r, i] = (x[r, i] * s_r) * weight[i] with s_r = 1 / sqrt(mean_i x[r, i]^2 + eps); Zhang and
/// Sennrich 2019, arXiv:1910.07467. x and y are dense [rows, size] and may be the same.
/// `inverse_rms` [rows], when given, receives s_r (the backward pass needs it).
void rms_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t size,
              const float* weight, float eps, float* y, float* inverse_rms = nullptr);

/// y[r, i] = ((x[r, i] - mean_r) * s_r) * weight[i] + bias[i] with s_r = 1 / sqrt(var_r + eps); Ba,
/// Kiros and Hinton 2016, arXiv:1607.06450. Layout as rms_norm(). `moments` [rows, 2], when given,
/// receives (mean_r, s_r).
void layer_norm(ThreadPool& pool, const float* x, std::int64_t rows, std::int64_t size,
                const float* weight, const float* bias, float eps, float* y,
                float* moments = nullptr);

}  // namespace rl::kernel
