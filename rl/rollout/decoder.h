// The forward step of generation: tokens in, logits out, keys and values into the cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "rl/model/forward.h"
#include "rl/rollout/kv_cache.h"

namespace rl {

class QuantizedWeights;
class Transformer;

/// Tokens of one sequence in a step: one when decoding, several when a prompt is read.
struct StepSequence {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> blocks;  // covers first_position + tokens.size() positions
  std::int64_t first_position = 0;       // positions before it are in the cache
  std::int64_t length_max = 0;           // that the sequence may reach; 0: what it has now
};

/// Runs the model's own graph with keys and values in pages of a cache, so that a token's logits have the same bits whether its
/// sequence comes token by token, in pieces or whole, alone or with others, here or in training.
/// With 8-bit weights the bits are those of a model whose weights are what the 8-bit ones stand for.
/// One thread at a time; borrows the model, the cache and the 8-bit weights.
class Decoder {
 public:
  Decoder(const Transformer& model, KvCache& cache, const QuantizedWeights* quantized = nullptr) : model_(model), cache_(cache), quantized_(quantized) {}

  /// Runs all tokens of the step, in one batch of as many rows. Token ids must be inside the vocabulary.
  void forward(std::span<const StepSequence> sequences);

  /// Logits [rows.size(), vocab] of rows of the last forward(), counted through its sequences. Valid until the next call.
  std::span<const float> logits(std::span<const std::int64_t> rows);

 private:
  at::Tensor attend(std::int64_t layer, const forward::AttentionShape& shape, std::span<const StepSequence> sequences, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& v);
  void store(std::int64_t layer, std::span<const StepSequence> sequences, const float* k, const float* v);

  const Transformer& model_;
  KvCache& cache_;
  const QuantizedWeights* quantized_;
  at::Tensor hidden_;  // [rows of the step, hidden]
  at::Tensor logits_;
};

}  // namespace rl
