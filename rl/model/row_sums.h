// Sums of rows by where they go: gradients of rows that were looked up, perhaps several times.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace rl {

/// Row i goes to row to[i]. A value that keeps what it has computed; one thread at a time.
class RowSums {
 public:
  explicit RowSums(std::vector<std::int64_t> to) : to_(std::move(to)) {}

  /// `to` on that device. Copied there once.
  const at::Tensor& index(at::Device device) const;

  /// into[to[i]] += rows[i], rows in their order: the same bits in every run. On a device the rows
  /// that go to one place are summed first, since adding them one by one has no order there.
  void add(at::Tensor into, const at::Tensor& rows) const;

  /// The rows that are added to, each once, ascending.
  std::vector<std::int64_t> destinations() const;

 private:
  // The rows by where they go, on a device: rows offsets[k] to offsets[k + 1] of those in `order`
  // go to row destinations[k].
  struct Segments {
    at::Tensor order, offsets, destinations;
  };

  const Segments* segments(at::Device device) const;

  std::vector<std::int64_t> to_;
  mutable at::Tensor index_;
  mutable Segments segments_;
  mutable bool repeats_ = false;
  mutable bool grouped_ = false;
};

}  // namespace rl
