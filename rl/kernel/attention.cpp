#include "rl/kernel/attention.h"

#include <algorithm>
#include <vector>

#include "rl/kernel/kernel_table.h"
#include "runtime/core/check.h"

namespace rl::kernel {
namespace {

// Queries of one sequence that one range of work covers.
constexpr std::int64_t kQueriesPerBlock = 16;

struct QueryBlock {
  std::size_t sequence;
  std::int64_t begin;
  std::int64_t end;
};

}  // namespace

void attention(ThreadPool& pool, const AttentionShape& shape, const float* q, std::int64_t q_stride,
               std::span<const AttentionSequence> sequences, float* out, std::int64_t out_stride,
               float* log_normalizer) {
  CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0);
  const std::int64_t width = shape.heads * shape.head_dim;
  std::vector<QueryBlock> blocks;
  std::int64_t longest = 0;
  std::int64_t products = 0;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const AttentionSequence& sequence = sequences[s];
    CHECK(sequence.blocks == nullptr || sequence.block_tokens % kAttentionChunk == 0);
    for (std::int64_t begin = 0; begin < sequence.query_count; begin += kQueriesPerBlock) {
      blocks.push_back({.sequence = s,
                        .begin = begin,
                        .end = std::min(begin + kQueriesPerBlock, sequence.query_count)});
    }
    longest = std::max(longest, sequence.first_position + sequence.query_count);
    products += sequence.query_count * (sequence.first_position + sequence.query_count);
  }
  // The longest first: causal blocks grow towards the end, and a long one started last would leave
  // the other threads idle.
  std::reverse(blocks.begin(), blocks.end());

  const KernelTable& table = kernels();
  const std::int64_t scratch_floats =
      kAttentionRows * ((longest + kAttentionChunk - 1) / kAttentionChunk * kAttentionChunk);
  const auto ranges = static_cast<std::int64_t>(blocks.size()) * shape.kv_heads;
  // A decode step over short sequences is less work than waking a thread.
  const bool small = products * width < (16 << 10);
  pool.parallel_for(ranges, small ? ranges : 1, [&](std::int64_t begin, std::int64_t end) {
    thread_local std::vector<float> scratch;
    if (scratch.size() < static_cast<std::size_t>(scratch_floats))
      scratch.resize(static_cast<std::size_t>(scratch_floats));
    for (std::int64_t i = begin; i < end; ++i) {
      const QueryBlock& block = blocks[static_cast<std::size_t>(i / shape.kv_heads)];
      table.attention({.shape = &shape,
                       .sequence = &sequences[block.sequence],
                       .q = q,
                       .q_stride = q_stride == 0 ? width : q_stride,
                       .out = out,
                       .out_stride = out_stride == 0 ? width : out_stride,
                       .log_normalizer = log_normalizer,
                       .kv_head = i % shape.kv_heads,
                       .query_begin = block.begin,
                       .query_end = block.end,
                       .scratch = scratch.data()});
    }
  });
}

}  // namespace rl::kernel
