// Which of the two implementations of forward.h computes: the batch-invariant kernels, or ATen.
#pragma once

#include <ATen/core/Tensor.h>

namespace rl::forward {

/// While it lives with `on`, passes on this thread compute by ATen on a CPU too, as they do on
/// every other device: bits then depend on the batch and on ATen's threads. They nest. For passes
/// without gradients.
class ByAten {
 public:
  explicit ByAten(bool on);
  ~ByAten();
  ByAten(const ByAten&) = delete;
  ByAten& operator=(const ByAten&) = delete;

 private:
  bool before_;
};

/// Whether the kernels of rl/kernel compute with what is where `t` is.
bool by_kernels(const at::Tensor& t);

}  // namespace rl::forward
