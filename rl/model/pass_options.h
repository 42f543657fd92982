// PassOptions: precision, recomputation and the like of one pass. Values that go with it through
// graph and operations, and into what its backward pass captures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "rl/kernel/thread_pool.h"

namespace rl {

class QuantizedWeights;
class PassTeam;

struct PassOptions {
  /// Mixed precision: linear layers (the output layer too) multiply in bf16, and so does their
  /// backward pass. Both factors are rounded to 8 bits of fraction, sums within a product are fp32,
  /// the product is rounded again. Weights and their gradients, norms, attention, the softmax and
  /// the loss stay fp32. Bits do not depend on the number of threads.
  bool bf16 = false;

  /// Activation checkpointing; Chen et al. 2016, arXiv:1604.06174. Backward keeps what enters each
  /// layer, and computes the layer again when its gradient is due. Values and gradients are the
  /// same. The price is one more forward pass and the memory of a single layer's activations. Where
  /// no graph is built it changes nothing.
  bool recompute_layers = false;

  /// Computes by ATen on a CPU too, as on every other device: bits then depend on the batch and on
  /// ATen's threads. For passes without gradients.
  bool by_aten = false;

  /// Linear layers take the 8-bit copy of a weight where there is one; null: the weights
  /// themselves. For passes without gradients: backward reads the weights themselves.
  const QuantizedWeights* quantized = nullptr;
};

/// What a loss makes of whole rows of logits [R, V], of those from `first` on. It gives K numbers a
/// row, [R, K], that depend on the row's logits alone. With a graph where gradients are on. R may
/// be 0.
using OfLogits = std::function<at::Tensor(const at::Tensor& logits_RV, std::int64_t first)>;

/// Rows of logits that there are at a time: of all of a pass they would be far larger than it.
inline constexpr std::int64_t kLogitRows = 256;

/// What an operation computes with. A value; borrows the threads.
struct PassContext {
  kernel::ThreadPool& pool;
  PassOptions options;
  const PassTeam* team = nullptr;  // that shares the layers which have a cut

  /// Whether the batch-invariant kernels of rl/kernel compute with what is where `t` is, or ATen.
  bool by_kernels(const at::Tensor& t) const { return t.device().is_cpu() && !options.by_aten; }

  /// `t` as a factor of a product: rounded to bf16, or as it is. An undefined tensor stays so.
  at::Tensor as_factor(const at::Tensor& t) const {
    return options.bf16 && t.defined() ? t.to(at::kBFloat16) : t;
  }
};

}  // namespace rl
