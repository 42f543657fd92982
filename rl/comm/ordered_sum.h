// OrderedSum: an all-reduce that adds in the order of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/comm/links.h"
#include "runtime/core/result.h"

namespace rl {

/// In buckets: each rank is sent its slice of a bucket by all others, adds them up in the order of
/// ranks, and sends the sum to all. While a bucket is added up and goes back, the next one is on
/// its way. Borrows the links. Extra memory of a rank: four buckets.
template <class T>
class OrderedSum {
 public:
  /// `on_progress` is called for each bucket.
  OrderedSum(Links& links, std::uint64_t operation, std::size_t bucket_bytes,
             std::function<void()> on_progress)
      : links_(links),
        operation_(operation),
        bucket_elements_(bucket_bytes / sizeof(T)),
        on_progress_(std::move(on_progress)) {}

  /// All ranks give equally many values. Errors: those of Exchange::wait.
  runtime::Status run(std::span<T> values);

 private:
  struct Bucket {
    std::size_t index = 0;
    std::span<T> values;
    std::vector<T> addends;  // this rank's slice as every rank has it, one after the other
    std::unique_ptr<Exchange> scattered;
    std::unique_ptr<Exchange> gathered;
  };

  std::span<T> slice_of(const Bucket& bucket, int rank) const;
  std::span<T> addend(Bucket& bucket, int rank) const;
  void scatter(Bucket& bucket) const;
  void add(Bucket& bucket) const;
  void gather(Bucket& bucket) const;

  Links& links_;
  const std::uint64_t operation_;
  const std::size_t bucket_elements_;
  const std::function<void()> on_progress_;
};

extern template class OrderedSum<float>;
extern template class OrderedSum<double>;

}  // namespace rl
