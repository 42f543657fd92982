// The elements of a tensor on the CPU, for code without torch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace rl {

/// All elements of a contiguous fp32 tensor on the CPU, to be read and written.
inline std::span<float> elements_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace rl
