// A decoder's weights as raw pointers: what the engine computes with, whoever owns the memory.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

struct ModelConfig;
class Parameters;

/// Sizes in elements; see ModelConfig.
struct DecoderShape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;
  std::int64_t vocab = 0;
  float norm_eps = 0;

  std::int64_t query_size() const { return heads * head_dim; }
  std::int64_t kv_size() const { return kv_heads * head_dim; }
};

/// One layer. Matrices are row-major [out, in]; a null bias is none.
struct DecoderLayerWeights {
  const float* attention_norm = nullptr;  // [hidden]
  const float* q = nullptr;               // [query_size, hidden]
  const float* k = nullptr;               // [kv_size, hidden]
  const float* v = nullptr;               // [kv_size, hidden]
  const float* o = nullptr;               // [hidden, query_size]
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* o_bias = nullptr;
  const float* mlp_norm = nullptr;  // [hidden]
  const float* gate = nullptr;      // [intermediate, hidden]
  const float* up = nullptr;        // [intermediate, hidden]
  const float* down = nullptr;      // [hidden, intermediate]
};

/// Borrowed: the parameters' arena must outlive it and stay where it is.
struct DecoderWeights {
  DecoderShape shape;
  const float* embedding = nullptr;  // [vocab, hidden]
  std::vector<DecoderLayerWeights> layers;
  const float* final_norm = nullptr;  // [hidden]
  const float* lm_head = nullptr;     // [vocab, hidden]; the embedding when tied
};

/// Points into the arena of `parameters`: an update of the arena is an update of the decoder, with nothing copied.
/// kUnimplemented: the arena is not in host memory, or the model has parameters that the decoder would not use.
runtime::Result<DecoderWeights> decoder_weights(const ModelConfig& config, const Parameters& parameters);

}  // namespace rl
