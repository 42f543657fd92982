// Element-by-element functions.
#pragma once

#include <cstdint>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// What stands between the two layers of an MLP, or makes scores of a router's logits.
enum class Activation {
  kSilu,      // x / (1 + exp(-x)); Elfwing et al. 2017, arXiv:1702.03118
  kGelu,      // x * Phi(x), by an approximation of erf within 1.5e-7; Hendrycks and Gimpel 2016,
              // arXiv:1606.08415
  kGeluTanh,  // the same paper's approximation by tanh ("gelu_new", "gelu_pytorch_tanh")
  kRelu,
  kSigmoid,  // 1 / (1 + exp(-x))
};

/// y = activation(gate) * up, [count], or without `up` (null) the activation alone; y may be gate
/// or up.
void activate(ThreadPool& pool, Activation activation, const float* gate, const float* up,
              std::int64_t count, float* y);

/// What backward passes need of p = activation(gate) * up, [count], of whose gradient there is dp:
/// the gradients of gate and up, and p again. Without `up` (null) p = activation(gate), and d_up is
/// not written. d_gate may be dp. On the calling thread.
struct ActivatedGradient {
  const float* gate = nullptr;
  const float* up = nullptr;
  const float* dp = nullptr;
  std::int64_t count = 0;
  float* d_gate = nullptr;
  float* d_up = nullptr;
  float* p = nullptr;
};
void activate_backward(Activation activation, const ActivatedGradient& gradient);

/// y = cap * tanh(x / cap), [count], in place allowed: logits that are kept below a bound (Gemma 2,
/// arXiv:2408.00118).
void softcap(ThreadPool& pool, const float* x, std::int64_t count, float cap, float* y);

/// y = exp(x), [count], in place allowed. Relative error below 2e-7; 0 below -104, infinity
/// above 88.73, NaN stays NaN.
void exp(ThreadPool& pool, const float* x, std::int64_t count, float* y);

/// y = a + b, [count]; y may be a or b.
void add(ThreadPool& pool, const float* a, const float* b, std::int64_t count, float* y);

/// y[r] = table[ids[r]], rows of `size` elements. Ids must be inside the table.
void gather_rows(ThreadPool& pool, const float* table, std::int64_t size, const std::int32_t* ids,
                 std::int64_t rows, float* y);

}  // namespace rl::kernel
