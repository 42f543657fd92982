// The shape of a model for benchmarks of files of weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rl/model/model_config.h"

namespace bench {

/// A dense model with tied embeddings and at least one layer, whose weights take about `mib` MiB in
/// fp32.
inline rl::ModelConfig model_of_size(std::int64_t mib) {
  rl::ModelConfig config;
  config.family = "llama";
  config.hidden_size = 2048;
  config.heads = 16;
  config.kv_heads = 4;
  config.head_dim = 128;
  config.intermediate_size = 5632;
  config.vocab_size = 32000;
  config.max_position_embeddings = 2048;
  config.tie_word_embeddings = true;
  const std::int64_t layer = 2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 5632 * 2048;
  config.layers = std::max<std::int64_t>(1, ((mib << 18) - 32000 * 2048) / layer);
  return config;
}

}  // namespace bench
