// Private to rl/rollout: attention over a cache's blocks by ATen, on whatever device the cache is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "rl/model/forward.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/step_sequence.h"

namespace rl {

/// The keys and values that sequences see are gathered through their block tables, for like
/// sequences together. scaled_dot_product_attention gets them. It does not know capped scores,
/// which are multiplied out instead. What all layers of a step share is made once.
///
/// A place behind a sequence's end in what is gathered holds the sequence's first token. What other
/// sequences left in a block, infinite perhaps, thus reaches no sequence. A value for one step;
/// borrows the cache.
class PagedAttention {
 public:
  PagedAttention(KvCache& cache, std::span<const StepSequence> sequences);

  /// Attention of a layer, as Attend, after putting the rows' keys and values into the
  /// cache.
  at::Tensor attend(std::int64_t layer, const forward::AttentionShape& shape, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& v);

 private:
  // Sequences of as many queries each, and of about as many keys.
  struct Group {
    std::int64_t sequences = 0;
    std::int64_t queries = 0;    // of each
    std::int64_t keys = 0;       // of the longest
    at::Tensor rows;             // [sequences * queries] of the step
    at::Tensor slots;            // [sequences * keys] rows of the cache, of keys in layer 0
    at::Tensor first_positions;  // [sequences, 1, 1] of the queries
    std::map<std::int64_t, at::Tensor>
        masks;  // by window: [sequences, 1, queries, keys], added to the scores
  };

  void add_group(std::span<const StepSequence> sequences, std::span<const std::size_t> members,
                 std::span<const std::int64_t> first_rows);
  const at::Tensor& mask(Group& group, std::int64_t window);
  at::Tensor attend(Group& group, std::int64_t layer, const forward::AttentionShape& shape,
                    const at::Tensor& q);

  KvCache& cache_;
  at::Tensor written_;  // [T] rows of the cache, of keys in layer 0
  std::vector<Group> groups_;
};

}  // namespace rl
