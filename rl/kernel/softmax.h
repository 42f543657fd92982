// Log-softmax over the vocabulary and the values taken from it.
// Shapes: R rows, V vocabulary.
#pragma once

#include <cstdint>
#include <span>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

/// What `log_softmax_gather` fills per row; null pointers are skipped.
struct LogSoftmaxOutputs {
  float* logprob = nullptr;  // [R] log-prob of the row's target
  float* log_normalizer =
      nullptr;  // [R] log sum_v exp(z_v), so that softmax_v = exp(z_v - log_normalizer)
  float* entropy =
      nullptr;  // [R] -sum_v p_v log p_v, in nats; costs a second pass of the same length
};

/// Log-softmax of z = logits * (1 / temperature), read at `targets`. logits is [rows, vocab] with
/// `stride` elements between rows (0: dense). A negative target gives log-prob 0. A row with a NaN
/// gives NaN. temperature > 0.
void log_softmax_gather(ThreadPool& pool, const float* logits, std::int64_t rows,
                        std::int64_t vocab, std::int64_t stride, float temperature,
                        const std::int32_t* targets, const LogSoftmaxOutputs& outputs);

}  // namespace rl::kernel
