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

/// A sum over several rounds: in each a rank has something to add or not, and every rank ends with
/// ((round 0's ranks in order) + round 1's in order) + ... of those that have.
template <class T>
struct SumRounds {
  std::vector<T> carry = {};  // of this rank's slices, what the rounds before add up to
  bool begun = false;         // some rank has added something
};

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

  /// One round of several: adds `values` of the ranks that have a 1 in `adds`. In the last round
  /// all ranks end with the sum of all rounds in `values`, and `rounds` is forgotten; before it
  /// `values` stay as they are.
  runtime::Status run(std::span<T> values, SumRounds<T>& rounds, std::span<const std::uint8_t> adds,
                      bool last);

 private:
  struct Bucket {
    std::size_t index = 0;
    std::span<T> values;
    std::span<T> carry;      // of this rank's slice; empty: there is one round
    std::vector<T> addends;  // this rank's slice as every rank has it, one after the other
    std::unique_ptr<Exchange> scattered;
    std::unique_ptr<Exchange> gathered;
  };

  std::span<T> slice_of(const Bucket& bucket, int rank) const;
  std::span<T> addend(Bucket& bucket, int rank) const;
  bool adds(int rank) const { return adds_.empty() || adds_[static_cast<std::size_t>(rank)] != 0; }
  runtime::Status run_buckets(std::span<T> values);
  std::size_t own_elements(std::size_t values) const;
  void scatter(Bucket& bucket) const;
  void add(Bucket& bucket) const;
  void gather(Bucket& bucket) const;

  Links& links_;
  const std::uint64_t operation_;
  const std::size_t bucket_elements_;
  const std::function<void()> on_progress_;
  // Of a sum over rounds.
  std::span<const std::uint8_t> adds_;
  std::span<T> carry_;
  bool begun_ = false;  // carry_ holds something
  bool last_ = true;
};

extern template class OrderedSum<float>;
extern template class OrderedSum<double>;

}  // namespace rl
