#include "rl/model/row_sums.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/segment_reduce.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace rl {
namespace {

at::Tensor copied_to(at::Device device, std::span<const std::int64_t> host) {
  return at::from_blob(const_cast<std::int64_t*>(host.data()),
                       {static_cast<std::int64_t>(host.size())},
                       at::TensorOptions().dtype(at::kLong))
      .to(device, at::kLong, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

const at::Tensor& RowSums::index(at::Device device) const {
  if (!index_.defined() || index_.device() != device) index_ = copied_to(device, to_);
  return index_;
}

std::vector<std::int64_t> RowSums::destinations() const {
  std::vector<std::int64_t> rows = to_;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

const RowSums::Segments* RowSums::segments(at::Device device) const {
  if (grouped_) return repeats_ ? &segments_ : nullptr;
  grouped_ = true;
  const std::size_t rows = to_.size();
  std::vector<std::int64_t> all(rows), offsets, destinations;
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) {
    return to_[static_cast<std::size_t>(a)] < to_[static_cast<std::size_t>(b)];
  });
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int64_t to = to_[static_cast<std::size_t>(all[i])];
    if (!destinations.empty() && destinations.back() == to) continue;
    destinations.push_back(to);
    offsets.push_back(static_cast<std::int64_t>(i));
  }
  const auto count = static_cast<std::int64_t>(destinations.size());
  repeats_ = destinations.size() < rows;
  if (!repeats_) return nullptr;
  offsets.push_back(static_cast<std::int64_t>(rows));
  all.insert(all.end(), offsets.begin(), offsets.end());
  all.insert(all.end(), destinations.begin(), destinations.end());
  const at::Tensor there = copied_to(device, all);  // one copy for the three
  const auto first = static_cast<std::int64_t>(rows);
  segments_ = {there.narrow(0, 0, first), there.narrow(0, first, count + 1),
               there.narrow(0, first + count + 1, count)};
  return &segments_;
}

void RowSums::add(at::Tensor into, const at::Tensor& rows) const {
  const Segments* several = into.device().is_cpu() ? nullptr : segments(into.device());
  if (several == nullptr) {
    into.index_add_(0, index(into.device()), rows);
    return;
  }
  const at::Tensor sums =
      at::segment_reduce(rows.index_select(0, several->order), "sum", /*lengths=*/std::nullopt,
                         /*indices=*/std::nullopt, several->offsets, /*axis=*/0, /*unsafe=*/true);
  into.index_add_(0, several->destinations, sums);
}

}  // namespace rl
