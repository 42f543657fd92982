// Whole distributions over the next token, with gradients: what distillation compares.
// Log-probabilities of given tokens are Transformer::token_logprobs().
#pragma once

#include <ATen/core/Tensor.h>

#include "rl/model/packed_batch.h"
#include "rl/model/transformer.h"
#include "runtime/core/result.h"

namespace rl {

/// The last hidden states that the batch's targets are predicted from, [N, hidden]. Carries the
/// graph where the model's gradients are enabled. Small beside the logits, so that these can be
/// made for some rows at a time. Errors: as Transformer::token_logprobs().
runtime::Result<at::Tensor> predicting_states(const Transformer& model, const PackedBatch& batch);

/// Logits of such states, fp32 [rows, V], not divided by a temperature; they carry the graph where
/// the states do or the output layer is trained. kResourceExhausted: out of memory.
runtime::Result<at::Tensor> state_logits(const Transformer& model, const at::Tensor& states);

}  // namespace rl
