// Causal attention of query rows over cached or packed keys and values, with grouped heads (GQA,
// arXiv:2305.13245).
#pragma once

#include <cstdint>
#include <span>

#include "rl/kernel/thread_pool.h"

namespace rl::kernel {

struct AttentionShape {
  std::int64_t heads = 0;     // of the queries; a multiple of kv_heads
  std::int64_t kv_heads = 0;  // of the keys and values
  std::int64_t head_dim = 0;
  float scale = 1.0f;    // usually 1 / sqrt(head_dim)
  float softcap = 0.0f;  // scores become softcap * tanh(score / softcap); 0: as they are
  std::int64_t window =
      0;  // a query sees itself and the window - 1 tokens before it; 0: all before it
};

/// One sequence's keys, values and the queries that read them. Token t's keys are [kv_heads,
/// head_dim], dense. When `blocks` is null (packed), they begin at `keys + t * token_stride`. Else
/// (pages of a cache) they begin at `keys + blocks[t / block_tokens] * block_stride + (t %
/// block_tokens) * token_stride`. Values likewise.
struct AttentionSequence {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t token_stride = 0;
  const std::int32_t* blocks = nullptr;
  std::int64_t block_tokens = 0;  // a multiple of kAttentionChunk
  std::int64_t block_stride = 0;
  std::int64_t query_row = 0;  // the first query's row in q
  std::int64_t query_count = 0;
  std::int64_t first_position =
      0;  // query i sees tokens 0 .. first_position + i, of which the window keeps the last ones
};

/// Keys are visited in chunks of this many, counted from the sequence's start.
inline constexpr std::int64_t kAttentionChunk = 16;

/// out[r, h] = sum_t softmax_t(scale * q[r, h] . k[t, h / group]) v[t, h / group]; q and out are
/// [rows, heads, head_dim] with their own row strides (0: dense). Two passes over the keys: maximum
/// first, then exponentials, in the order of t. `log_normalizer` [rows, heads], when given,
/// receives log sum_t exp(scale * q . k), which the backward pass needs.
void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride,
               std::span<const AttentionSequence> sequences, float* out, std::int64_t out_stride,
               float* log_normalizer = nullptr);

}  // namespace rl::kernel
