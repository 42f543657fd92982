// Mixed precision: which products of a pass are computed in bf16.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl {

/// While it lives with `on`, passes on this thread multiply with their linear layers (the output
/// layer too) in bf16, and so do the backward passes of what was computed so, wherever they run:
/// both factors are rounded to 8 bits of fraction, sums within a product are fp32, the product is
/// rounded again. Weights and their gradients, norms, attention, the softmax and the loss stay
/// fp32. They nest. Bits do not depend on the number of threads.
class Bf16Products {
 public:
  explicit Bf16Products(bool on);
  ~Bf16Products();
  Bf16Products(const Bf16Products&) = delete;
  Bf16Products& operator=(const Bf16Products&) = delete;

  /// Whether one is alive with `on`.
  static bool in_use();

 private:
  bool before_;
};

/// `t` as a factor: rounded to bf16 inside a Bf16Products, else as it is. An undefined tensor stays
/// so.
at::Tensor as_factor(const at::Tensor& t);

}  // namespace rl
