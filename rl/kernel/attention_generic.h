// Private to rl/kernel: attention of a block of queries, written once over a Lanes type.
// A "row" is one query with one of its heads; all rows of a block read the same key/value head.
// Each row's numbers depend on its own query and on the keys that it sees alone: the rows of a tile
// share loads, never sums.
#pragma once

#include <cmath>
#include <cstdint>

#include "rl/kernel/kernel_table.h"
#include "rl/kernel/rows_generic.h"

namespace rl::kernel {

/// Where token t's keys (or values) of one head are.
struct HeadView {
  const float* base;
  const AttentionSequence* sequence;

  [[gnu::always_inline]] inline const float* chunk(
      std::int64_t token) const {  // token: a multiple of kAttentionChunk
    if (sequence->blocks == nullptr) return base + token * sequence->token_stride;
    return base + sequence->blocks[token / sequence->block_tokens] * sequence->block_stride +
           token % sequence->block_tokens * sequence->token_stride;
  }
};

/// scores[16] of one row against 16 keys; `last` is the last of them that exists and stands in for
/// those after it.
template <class L>
[[gnu::always_inline]] inline void score_chunk(const float* q, const float* keys,
                                               std::int64_t stride, std::int64_t last,
                                               std::int64_t head_dim, float scale, float softcap,
                                               float* scores) {
  L sums[16];
  const float* key[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    sums[i] = L::zero();
    key[i] = keys + (i < last ? i : last) * stride;
  }
  std::int64_t d = 0;
  for (; d + 16 <= head_dim; d += 16) {
    const L qd = L::load(q + d);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = L::fma(qd, L::load(key[i] + d), sums[i]);
  }
  if (d < head_dim) {
    const L qd = L::load_first(q + d, head_dim - d);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i)
      sums[i] = L::fma(qd, L::load_first(key[i] + d, head_dim - d), sums[i]);
  }
  float folded[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4)
    L::fold4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3], folded + i);
  const L scaled = L::load(folded) * L::all(scale);
  (softcap == 0.0F ? scaled : softcap_lanes(scaled, softcap)).store(scores);
}

/// Turns scores[first, count) into exp(score - maximum) and returns (maximum, sum). Writes zeros
/// around them up to the borders of their chunks.
template <class L>
SoftmaxSums exponentiate(float* scores, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = first / kAttentionChunk * kAttentionChunk;
  const std::int64_t end = (count + kAttentionChunk - 1) / kAttentionChunk * kAttentionChunk;
  for (std::int64_t t = begin; t < first; ++t) scores[t] = kMinusInfinity;
  for (std::int64_t t = count; t < end; ++t) scores[t] = kMinusInfinity;
  const float maximum = maximum_of<L>(scores + begin, end - begin, 1.0F);
  L sum = L::zero();
  for (std::int64_t t = begin; t < end; t += 16) {
    const L e = exp_lanes(L::load(scores + t) - L::all(maximum));
    e.store(scores + t);
    sum = sum + e;
  }
  return {.maximum = maximum, .sum = fold(sum)};
}

/// out[r][0, D * 16) += sum over t in [begin, end) of weights[r][t] * value(t), one fma a token in
/// the order of t.
template <class L, int R, int D>
void add_values_tile(const HeadView& values, const float* const* weights, std::int64_t begin,
                     std::int64_t end, std::int64_t offset, std::int64_t width, float* const* out) {
  L sums[R * D];
  const std::int64_t tail = width - (D - 1) * 16;  // 1..16 elements in the last vector
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int d = 0; d < D; ++d)
      sums[r * D + d] = L::load_first(out[r] + offset + d * 16, d == D - 1 ? tail : 16);
  }
  const std::int64_t stride = values.sequence->token_stride;
  for (std::int64_t t = begin; t < end;) {
    const std::int64_t chunk = t / kAttentionChunk * kAttentionChunk;
    const std::int64_t chunk_end = end < chunk + kAttentionChunk ? end : chunk + kAttentionChunk;
    const float* value = values.chunk(chunk) + (t - chunk) * stride + offset;
    for (; t < chunk_end; ++t, value += stride) {
      L v[D];
#pragma GCC unroll 4
      for (int d = 0; d < D - 1; ++d) v[d] = L::load(value + d * 16);
      v[D - 1] =
          tail == 16 ? L::load(value + (D - 1) * 16) : L::load_first(value + (D - 1) * 16, tail);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const L weight = L::all(weights[r][t]);
#pragma GCC unroll 4
        for (int d = 0; d < D; ++d) sums[r * D + d] = L::fma(weight, v[d], sums[r * D + d]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int d = 0; d < D; ++d)
      sums[r * D + d].store_first(out[r] + offset + d * 16, d == D - 1 ? tail : 16);
  }
}

template <class L, int R>
void add_values_rows(const HeadView& values, const float* const* weights, std::int64_t begin,
                     std::int64_t end, std::int64_t head_dim, float* const* out) {
  for (std::int64_t offset = 0; offset < head_dim; offset += 64) {
    const std::int64_t width = head_dim - offset < 64 ? head_dim - offset : 64;
    if (width > 48)
      add_values_tile<L, R, 4>(values, weights, begin, end, offset, width, out);
    else if (width > 32)
      add_values_tile<L, R, 3>(values, weights, begin, end, offset, width, out);
    else if (width > 16)
      add_values_tile<L, R, 2>(values, weights, begin, end, offset, width, out);
    else
      add_values_tile<L, R, 1>(values, weights, begin, end, offset, width, out);
  }
}

/// Rows [0, rows) of a tile; row r sees keys [first[r], seen[r]), both growing.
template <class L>
void attention_rows(const AttentionBlock& block, const HeadView& keys, const HeadView& values,
                    int rows, const float* const* q, float* const* out,
                    float* const* log_normalizer, const std::int64_t* first,
                    const std::int64_t* seen) {
  const std::int64_t head_dim = block.shape->head_dim;
  const std::int64_t stride = block.sequence->token_stride;
  const std::int64_t longest = seen[rows - 1];
  const std::int64_t scratch_row =
      (longest + kAttentionChunk - 1) / kAttentionChunk * kAttentionChunk;
  for (std::int64_t t = first[0] / kAttentionChunk * kAttentionChunk; t < longest;
       t += kAttentionChunk) {
    const float* chunk = keys.chunk(t);
    const std::int64_t last = (longest - t < kAttentionChunk ? longest - t : kAttentionChunk) - 1;
    for (int r = 0; r < rows; ++r) {
      if (t + kAttentionChunk <= first[r] || t >= seen[r]) continue;
      score_chunk<L>(q[r], chunk, stride, last, head_dim, block.shape->scale, block.shape->softcap,
                     block.scratch + r * scratch_row + t);
    }
  }
  SoftmaxSums sums[kAttentionRows];
  const float* weights[kAttentionRows];
  for (int r = 0; r < rows; ++r) {
    weights[r] = block.scratch + r * scratch_row;
    sums[r] = exponentiate<L>(block.scratch + r * scratch_row, first[r], seen[r]);
    // What its neighbours in the tile still see and it does not weighs nothing.
    for (std::int64_t t = first[0]; t < first[r] / kAttentionChunk * kAttentionChunk; ++t)
      block.scratch[r * scratch_row + t] = 0.0F;
    for (std::int64_t d = 0; d < head_dim; ++d) out[r][d] = 0.0F;
  }
  int done = 0;
  for (; done + 4 <= rows; done += 4)
    add_values_rows<L, 4>(values, weights + done, first[done], seen[done], head_dim, out + done);
  if (done + 2 <= rows) {
    add_values_rows<L, 2>(values, weights + done, first[done], seen[done], head_dim, out + done);
    done += 2;
  }
  const int paired = done;
  if (done < rows)
    add_values_rows<L, 1>(values, weights + done, first[done], seen[done], head_dim, out + done);
  for (int r = 0; r < rows; ++r) {
    // What the rows of a group see beyond its first row, each for itself.
    const int group_first = r >= paired ? r : r < paired / 4 * 4 ? r / 4 * 4 : paired / 4 * 4;
    if (seen[group_first] < seen[r])
      add_values_rows<L, 1>(values, weights + r, seen[group_first], seen[r], head_dim, out + r);
    const L inverse = L::all(1.0F / sums[r].sum);
    for (std::int64_t d = 0; d < head_dim; d += 16) {
      const std::int64_t n = head_dim - d < 16 ? head_dim - d : 16;
      (L::load_first(out[r] + d, n) * inverse).store_first(out[r] + d, n);
    }
    if (log_normalizer[r] != nullptr) {
      *log_normalizer[r] =
          static_cast<float>(double{sums[r].maximum} + std::log(double{sums[r].sum}));
    }
  }
}

template <class L>
void attention_block(const AttentionBlock& block) {
  const AttentionShape& shape = *block.shape;
  const AttentionSequence& sequence = *block.sequence;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const HeadView keys{sequence.keys + block.kv_head * shape.head_dim, &sequence};
  const HeadView values{sequence.values + block.kv_head * shape.head_dim, &sequence};
  const float* q[kAttentionRows];
  float* out[kAttentionRows];
  float* log_normalizer[kAttentionRows];
  std::int64_t first[kAttentionRows];
  std::int64_t seen[kAttentionRows];
  int rows = 0;
  for (std::int64_t query = block.query_begin; query < block.query_end; ++query) {
    for (std::int64_t g = 0; g < group; ++g) {
      const std::int64_t row = sequence.query_row + query;
      const std::int64_t head = block.kv_head * group + g;
      q[rows] = block.q + row * block.q_stride + head * shape.head_dim;
      out[rows] = block.out + row * block.out_stride + head * shape.head_dim;
      log_normalizer[rows] = block.log_normalizer == nullptr
                                 ? nullptr
                                 : block.log_normalizer + row * shape.heads + head;
      seen[rows] = sequence.first_position + query + 1;
      first[rows] = shape.window > 0 && seen[rows] > shape.window ? seen[rows] - shape.window : 0;
      const bool last = query + 1 == block.query_end && g + 1 == group;
      if (++rows < kAttentionRows && !last) continue;
      attention_rows<L>(block, keys, values, rows, q, out, log_normalizer, first, seen);
      rows = 0;
    }
  }
}

}  // namespace rl::kernel
