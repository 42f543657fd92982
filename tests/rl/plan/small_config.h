// A model whose memory can be worked out by hand.
#pragma once

#include "rl/model/model_config.h"

namespace rl {

inline ModelConfig small_config() {
  ModelConfig config;
  config.family = "llama";
  config.hidden_size = 8;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 4;
  config.intermediate_size = 16;
  config.vocab_size = 32;
  config.max_position_embeddings = 64;
  config.tie_word_embeddings = true;
  return config;
}

}  // namespace rl
