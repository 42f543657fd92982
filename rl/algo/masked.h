// Sums, means and normalisation over the response tokens of a batch.
// Shapes: B sequences, T tokens. Masks are fp32, 1 on response tokens and 0 elsewhere; what stands
// under a 0 never matters, NaN included.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace rl {

/// Sum of values where the mask is 1: scalar.
at::Tensor masked_sum(const at::Tensor& values_BT, const at::Tensor& mask_BT);

/// Mean over the mask: scalar; 0 where the mask is empty.
at::Tensor masked_mean(const at::Tensor& values_BT, const at::Tensor& mask_BT);

/// (values - mean) / sqrt(variance + 1e-8) with the mask's mean and unbiased variance. Masked-out
/// elements become 0. A mask of fewer than two tokens has no variance: the values come back with
/// only the mean taken off.
at::Tensor masked_whiten(const at::Tensor& values_BT, const at::Tensor& mask_BT);

/// Packed values [N], sequence after sequence, as rows padded with zeros: [B, max length].
/// Differentiable.
at::Tensor pad_rows(const at::Tensor& packed_N, std::span<const std::int64_t> lengths);

/// The mask that belongs to pad_rows.
at::Tensor length_mask(std::span<const std::int64_t> lengths);

}  // namespace rl
