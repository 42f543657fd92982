// The forward computations of a transformer, without a graph: the batch-invariant kernels of
// rl/kernel on the CPU, ATen elsewhere (and where PassOptions say so). Shapes: T tokens
// (rows), I and O inputs and outputs of a layer, H heads, K key-value heads, D head dimension, V
// vocabulary. Tensors are fp32, contiguous and on one device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rl/kernel/elementwise.h"
#include "rl/model/attention_shape.h"
#include "rl/model/packed_batch.h"
#include "rl/model/pass_options.h"
#include "rl/model/rope.h"
#include "rl/model/row_layout.h"
#include "rl/model/row_sums.h"

namespace rl::forward {

class PaddedAttention;

/// What a pass knows about its rows, computed once.
struct Rows {
  std::vector<std::int32_t> ids;        // [T]
  std::vector<std::int32_t> positions;  // [T] within the sequence
  std::vector<RowSequence> sequences;  // [B]; empty when the keys are not those of these rows alone
  std::vector<std::int32_t> row_of;    // see RowLayout
  std::vector<std::int32_t> rope_rows;  // [T] of the tables below
  std::shared_ptr<const RopeTables> rope;

  /// With `share`, tokens that begin a sequence as they begin the one before it are one row: what
  /// it computes depends on nothing else. Only where that saves enough to be worth gathering keys.
  Rows(const PackedBatch& batch, const Rope& rotary, bool share);
  /// Rows wherever they are in their sequences. `lengths` [T]: how long each one's sequence is (or
  /// may become), for angles that depend on it.
  Rows(std::vector<std::int32_t> ids, std::vector<std::int32_t> positions,
       std::span<const std::int64_t> lengths, const Rope& rotary);

  std::int64_t count() const { return static_cast<std::int64_t>(ids.size()); }
  /// As long as these rows.
  RowLayout layout() const { return {count(), sequences, row_of}; }
  bool shared() const { return layout().shared(); }
  /// The row of a token of the batch.
  std::int64_t row(std::int64_t token) const { return layout().row(token); }

  /// Cosines of the rows' angles, twice, and their sines, first negated: [T, 1, 2 * half], copied
  /// to a device once. One thread at a time.
  std::pair<at::Tensor, at::Tensor> angles(at::Device device) const;

  /// How attention gathers the sequences on a device, planned once for each shape. One thread at a
  /// time.
  const PaddedAttention& padded(const AttentionShape& shape, at::Device device) const;

  /// Sums of tokens by row; of shared rows alone. One thread at a time.
  const RowSums& row_sums() const;

 private:
  void find_angles(std::span<const std::int64_t> lengths, const Rope& rotary);

  mutable at::Tensor cos_, sin_;
  mutable std::optional<RowSums> row_sums_;
  mutable std::vector<std::shared_ptr<const PaddedAttention>> padded_;
};

using RowsPtr = std::shared_ptr<const Rows>;  // backward passes keep it

/// Rows of the table [V, O] -> [T, O].
at::Tensor embedding(const PassContext& pass, const at::Tensor& table,
                     std::span<const std::int32_t> ids);

/// A weight [O, I], and a bias [O] or undefined.
struct Linear {
  at::Tensor weight;
  at::Tensor bias;
};

/// x [T, I] times each weight transposed, plus its bias -> [T, O_i] each. With
/// PassOptions::quantized, of the 8-bit copies of the weights that have one.
std::vector<at::Tensor> linear(const PassContext& pass, const at::Tensor& x,
                               std::span<const Linear> layers);
at::Tensor linear(const PassContext& pass, const at::Tensor& x, const Linear& layer);

struct Normed {
  at::Tensor y;  // [T, O]
  at::Tensor
      moments;  // what backward needs: 1 / rms [T], or mean and 1 / standard deviation [T, 2]
};

/// Root mean square norm; Zhang and Sennrich 2019, arXiv:1910.07467.
Normed rms_norm(const PassContext& pass, const at::Tensor& x, const at::Tensor& weight, float eps);

/// Ba, Kiros and Hinton 2016, arXiv:1607.06450.
Normed layer_norm(const PassContext& pass, const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias, float eps);

using kernel::Activation;

/// activation(gate) * up, all [T, O] (gated linear units, Shazeer 2020, arXiv:2002.05202); without
/// `up` (undefined) the activation alone.
at::Tensor activate(const PassContext& pass, Activation activation, const at::Tensor& gate,
                    const at::Tensor& up);

/// cap * tanh(x / cap), in place; nothing for a cap of 0.
void softcap_(const PassContext& pass, const at::Tensor& x, float cap);

/// a + b of one shape.
at::Tensor add(const PassContext& pass, const at::Tensor& a, const at::Tensor& b);

/// Rotates the first dimensions of each head of x [T, heads * D], as many as there are angles, by
/// its row's position. `backwards` rotates the other way. x may be some of the rows, from `first`
/// on.
at::Tensor rope(const PassContext& pass, const Rows& rows, const at::Tensor& x, std::int64_t heads,
                bool backwards = false, std::int64_t first = 0);

/// The rows of x [T, O] token by token of the batch: keys or values of sequences that share rows.
at::Tensor by_token(const PassContext& pass, const Rows& rows, const at::Tensor& x);

/// Causal attention within each sequence; q [T, H * D], k and v [T, K * D].
Attended attention(const PassContext& pass, const Rows& rows, const AttentionShape& shape,
                   const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// Per row of logits [T, V], in units of nats.
struct RowLogprobs {
  at::Tensor logprob;         // [T] of the row's target
  at::Tensor log_normalizer;  // [T] log of the sum of exponentials of logits / temperature
  at::Tensor entropy;         // [T], undefined unless asked for
};

RowLogprobs row_logprobs(const PassContext& pass, const at::Tensor& logits,
                         std::span<const std::int32_t> targets, float temperature,
                         bool with_entropy);

}  // namespace rl::forward
