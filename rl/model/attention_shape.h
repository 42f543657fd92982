// AttentionShape: the sizes of one layer's attention, and which scores it computes. Shapes as in
// forward.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "rl/kernel/attention.h"

namespace rl::forward {

struct AttentionShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  float scale = 0;    // of the scores
  float softcap = 0;  // see kernel::AttentionShape
  std::int64_t window = 0;

  bool operator==(const AttentionShape&) const = default;

  kernel::AttentionShape of_kernel() const {
    return {.heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .scale = scale,
            .softcap = softcap,
            .window = window};
  }
  /// The first token that the one at `query` sees.
  std::int64_t first_key(std::int64_t query) const {
    return window > 0 && query + 1 > window ? query + 1 - window : 0;
  }
};

/// What attention computes for its queries.
struct Attended {
  at::Tensor y;               // [T, H * D]
  at::Tensor log_normalizer;  // [T, H]: log of the sum of exponentials of each query's scores
};

}  // namespace rl::forward
