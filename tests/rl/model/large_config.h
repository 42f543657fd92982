// The shape of a model of which every unit has a part for each of several ranks.
#pragma once

#include <cstdint>

#include "rl/model/model_config.h"

namespace rl::testing {

inline ModelConfig large_config(std::int64_t layers = 2) {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 256;
  config.layers = layers;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 64;
  config.intermediate_size = 512;
  config.vocab_size = 2048;
  config.max_position_embeddings = 64;
  return config;
}

}  // namespace rl::testing
