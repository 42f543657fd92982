// Attend: the attention of a pass, which training and generating implement differently.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "rl/model/forward.h"
#include "rl/model/model_config.h"

namespace rl {

/// Attention of a layer: q [T, heads * D], k and v [T, kv_heads * D] of the pass's rows -> [T,
/// heads * D].
using Attend =
    std::function<at::Tensor(std::int64_t layer, const forward::AttentionShape& shape,
                             const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;

/// What attention does in a layer of that model, for classes that implement Attend.
forward::AttentionShape attention_shape(const ModelConfig& config, std::int64_t layer);

}  // namespace rl
