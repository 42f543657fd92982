// Recursions over the tokens of responses, from their ends.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <vector>

namespace rl {

/// Runs `step(t, carried)` from the last column to the first. Where the mask is 0 the carried state
/// passes through unchanged.
template <class Step>
at::Tensor scan_backwards(const at::Tensor& mask_BT, Step step) {
  std::vector<at::Tensor> columns(static_cast<std::size_t>(mask_BT.size(1)));
  at::Tensor carried = at::zeros({mask_BT.size(0)}, mask_BT.options());
  for (std::int64_t t = mask_BT.size(1) - 1; t >= 0; --t) {
    carried = at::where(mask_BT.select(1, t).to(at::kBool), step(t, carried), carried);
    columns[static_cast<std::size_t>(t)] = carried;
  }
  return columns.empty() ? at::zeros(mask_BT.sizes(), mask_BT.options()) : at::stack(columns, 1);
}

}  // namespace rl
