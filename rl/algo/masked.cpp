#include "rl/algo/masked.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/core/check.h"

namespace rl {
namespace {

at::Tensor inside(const at::Tensor& values, const at::Tensor& mask) {
  CHECK(values.sizes() == mask.sizes());
  return at::where(mask.to(at::kBool), values, at::zeros({}, values.options()));
}

// Where each packed element stands in the flattened [B, T].
at::Tensor padded_positions(std::span<const std::int64_t> lengths, std::int64_t columns,
                            std::int64_t count) {
  at::Tensor positions = at::empty({count}, at::TensorOptions().dtype(at::kLong));
  std::int64_t* out = positions.mutable_data_ptr<std::int64_t>();
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    std::iota(out, out + lengths[row], static_cast<std::int64_t>(row) * columns);
    out += lengths[row];
  }
  return positions;
}

std::int64_t longest(std::span<const std::int64_t> lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace

at::Tensor masked_sum(const at::Tensor& values_BT, const at::Tensor& mask_BT) {
  return (inside(values_BT, mask_BT) * mask_BT).sum();
}

at::Tensor masked_mean(const at::Tensor& values_BT, const at::Tensor& mask_BT) {
  return masked_sum(values_BT, mask_BT) / mask_BT.sum().clamp_min(1e-8);
}

at::Tensor masked_whiten(const at::Tensor& values_BT, const at::Tensor& mask_BT) {
  const at::Tensor centred = inside(values_BT - masked_mean(values_BT, mask_BT), mask_BT);
  const double count = mask_BT.sum().item<double>();
  if (count < 2.0) return centred;
  const at::Tensor variance = masked_sum(centred.square(), mask_BT) / (count - 1.0);
  return centred * (variance + 1e-8).rsqrt();
}

at::Tensor pad_rows(const at::Tensor& packed_N, std::span<const std::int64_t> lengths) {
  CHECK(packed_N.size(0) == std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  const std::int64_t columns = longest(lengths);
  const at::Tensor positions =
      padded_positions(lengths, columns, packed_N.size(0)).to(packed_N.device());
  const at::Tensor flat =
      at::zeros({static_cast<std::int64_t>(lengths.size()) * columns}, packed_N.options());
  return flat.index_add(0, positions, packed_N)
      .view({static_cast<std::int64_t>(lengths.size()), columns});
}

at::Tensor length_mask(std::span<const std::int64_t> lengths) {
  at::Tensor mask = at::zeros({static_cast<std::int64_t>(lengths.size()), longest(lengths)});
  float* row = mask.mutable_data_ptr<float>();
  for (const std::int64_t length : lengths) {
    std::fill_n(row, length, 1.0F);
    row += mask.size(1);
  }
  return mask;
}

}  // namespace rl
