#include "rl/model/attend.h"

#include <cmath>

namespace rl {

forward::AttentionShape attention_shape(const ModelConfig& config, std::int64_t layer) {
  const double scale = config.attention_scale > 0.0
                           ? config.attention_scale
                           : 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  return {.heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .scale = static_cast<float>(scale),
          .softcap = static_cast<float>(config.attention_softcap),
          .window = config.window(layer)};
}

}  // namespace rl
