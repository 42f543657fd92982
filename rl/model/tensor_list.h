// Small tensors as bytes: what the ranks of a shared pass tell one another.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// fp32, on the CPU, of up to two dimensions, some undefined; without their graphs, but with
/// whether they require a gradient.
std::vector<std::byte> encode_tensors(std::span<const at::Tensor> tensors);

/// Leaves. kInternal: bytes that encode_tensors() did not give.
runtime::Result<std::vector<at::Tensor>> decode_tensors(std::span<const std::byte> bytes);

}  // namespace rl
