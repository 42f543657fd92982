// The forward computations of a transformer, without a graph: the batch-invariant kernels of rl/kernel on the CPU, ATen elsewhere.
// Shapes: T tokens (rows), I and O inputs and outputs of a layer, H heads, K key-value heads, D head dimension, V vocabulary.
// Tensors are fp32, contiguous and on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rl/kernel/thread_pool.h"
#include "rl/model/packed_batch.h"
#include "rl/model/rope.h"

namespace rl::forward {

/// What a pass knows about the layout of its rows, computed once.
struct Rows {
  std::vector<std::int32_t> ids;         // [T]
  std::vector<std::int32_t> positions;   // [T] within the sequence
  std::vector<std::int64_t> cu_seqlens;  // [B + 1]
  std::shared_ptr<const RopeTables> rope;

  Rows(const PackedBatch& batch, const Rope& rotary);

  std::int64_t count() const { return static_cast<std::int64_t>(ids.size()); }
};

using RowsPtr = std::shared_ptr<const Rows>;  // backward passes keep it

/// Rows of the table [V, O] -> [T, O].
at::Tensor embedding(kernel::ThreadPool& pool, const at::Tensor& table, std::span<const std::int32_t> ids);

/// x [T, I] times each weight [O_i, I] transposed -> [T, O_i] each.
std::vector<at::Tensor> linear(kernel::ThreadPool& pool, const at::Tensor& x, std::span<const at::Tensor> weights);
at::Tensor linear(kernel::ThreadPool& pool, const at::Tensor& x, const at::Tensor& weight);

struct Normed {
  at::Tensor y;            // [T, O]
  at::Tensor inverse_rms;  // [T]
};

/// Root mean square norm; Zhang and Sennrich 2019, arXiv:1910.07467.
Normed rms_norm(kernel::ThreadPool& pool, const at::Tensor& x, const at::Tensor& weight, float eps);

/// silu(gate) * up, all [T, O]; Shazeer 2020, arXiv:2002.05202.
at::Tensor silu_mul(kernel::ThreadPool& pool, const at::Tensor& gate, const at::Tensor& up);

/// a + b of one shape.
at::Tensor add(kernel::ThreadPool& pool, const at::Tensor& a, const at::Tensor& b);

/// Rotates each head of x [T, heads * D] by its row's position; `backwards` rotates the other way.
at::Tensor rope(kernel::ThreadPool& pool, const Rows& rows, const at::Tensor& x, std::int64_t heads, bool backwards = false);

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  float scale() const;  // 1 / sqrt(head_dim)
};

struct Attended {
  at::Tensor y;               // [T, H * D]
  at::Tensor log_normalizer;  // [T, H]: log of the sum of exponentials of each query's scores
};

/// Causal attention within each sequence; q [T, H * D], k and v [T, K * D].
Attended attention(kernel::ThreadPool& pool, const Rows& rows, const AttentionShape& shape, const at::Tensor& q, const at::Tensor& k,
                   const at::Tensor& v);

/// Per row of logits [T, V], in units of nats.
struct RowLogprobs {
  at::Tensor logprob;         // [T] of the row's target
  at::Tensor log_normalizer;  // [T] log of the sum of exponentials of logits / temperature
  at::Tensor entropy;         // [T], undefined unless asked for
};

RowLogprobs row_logprobs(kernel::ThreadPool& pool, const at::Tensor& logits, std::span<const std::int32_t> targets, float temperature,
                         bool with_entropy);

}  // namespace rl::forward
