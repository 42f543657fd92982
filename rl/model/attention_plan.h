// The cuts of a pass for attention on a device: stretches of queries with the keys that they see.
// Several stretches are padded to one size and computed together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/model/attention_shape.h"
#include "rl/model/row_layout.h"

namespace rl::forward {

/// Queries of one sequence, and its tokens from the first that one of them sees to the last query.
struct AttentionPiece {
  std::int64_t sequence = 0;     // index
  std::int64_t first_query = 0;  // token of the sequence
  std::int64_t queries = 0;
  std::int64_t first_key = 0;  // token of the sequence
  std::int64_t keys = 0;
};

/// Pieces of different sequences, in the order of these, padded to the longest of each kind.
struct AttentionBatch {
  std::vector<AttentionPiece> pieces;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  std::int64_t count() const { return static_cast<std::int64_t>(pieces.size()); }
};

struct AttentionLimits {
  std::int64_t queries_max = 512;  // of a piece: bounds the keys that no query sees
  std::int64_t score_bytes_max = 128
                                 << 20;     // of a batch, in fp32 and padded; a query's may be more
  std::int64_t small_bytes_max = 16 << 20;  // scores that cost less than a batch's launches
};

/// Every row is a query of one piece. Batches above small_bytes_max are padded to twice their size
/// at most.
std::vector<AttentionBatch> plan_attention(std::span<const RowSequence> sequences,
                                           const AttentionShape& shape,
                                           const AttentionLimits& limits);

}  // namespace rl::forward
