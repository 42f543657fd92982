// The forward step of generation: tokens in, logits out, keys and values into the cache.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "rl/model/forward.h"
#include "rl/model/pass_options.h"
#include "rl/rollout/kv_cache.h"
#include "rl/rollout/paged_attention.h"
#include "rl/rollout/step_sequence.h"

namespace rl {

class Transformer;

/// Runs the model's own graph with keys and values in pages of a cache. A token's logits have the
/// same bits whether its sequence comes token by token, in pieces or whole. They are the same alone
/// or with others, here or in training. With 8-bit weights the bits are those of a model whose
/// weights are what the 8-bit ones stand for. Without `deterministic`, or with a model that is not
/// on the CPU, ATen computes where the model is. Logits are then near those, and depend on the
/// batch. One thread at a time; borrows the model, the cache (of the model's device) and the 8-bit
/// weights.
class Decoder {
 public:
  Decoder(const Transformer& model, KvCache& cache, const QuantizedWeights* quantized = nullptr,
          bool deterministic = true);

  /// Runs all tokens of the step, in one batch of as many rows. Token ids must be inside the
  /// vocabulary.
  void forward(std::span<const StepSequence> sequences);

  /// Logits [rows.size(), vocab] of rows of the last forward(), counted through its sequences, on
  /// the model's device.
  at::Tensor logits(std::span<const std::int64_t> rows);

  bool deterministic() const { return deterministic_; }
  const PassOptions& pass_options() const { return options_; }

 private:
  at::Tensor attend(std::int64_t layer, const forward::AttentionShape& shape,
                    std::span<const StepSequence> sequences, const at::Tensor& q,
                    const at::Tensor& k, const at::Tensor& v);
  void store(std::int64_t layer, std::span<const StepSequence> sequences, const float* k,
             const float* v);

  const Transformer& model_;
  KvCache& cache_;
  bool deterministic_;
  PassOptions options_;
  at::Tensor hidden_;  // [rows of the step, hidden]
};

}  // namespace rl
