// OrderedSum: sums over ranks that are added up in the order of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rl/comm/links.h"
#include "rl/comm/sum_plan.h"
#include "runtime/core/result.h"

namespace rl {

/// Buckets of a sum that are under way at once: half of them go to be added up, half come back.
inline constexpr std::size_t kSumWindow = 4;

/// A sum over several rounds, in each of which a rank has something to add or not. The sum is
/// ((round 0's ranks in order) + round 1's in order) + ... of those that have. With
/// `kept` the values are never written.
template <class T>
struct SumRounds {
  std::vector<T> carry = {};  // of this rank's slices, what the rounds before add up to
  bool begun = false;         // some rank has added something
  bool kept = false;          // the sum of this rank's slices is made in `place`, and stays there
  std::span<T> place = {};
};

/// into = (into, if it has `begun`) + the terms in their order, each of as many values; zeros where
/// there are none.
template <class T>
void add_terms(std::span<T> into, bool begun, std::span<const std::span<const T>> terms);

/// All other ranks send a rank its slice of a bucket. It adds them up in the order of ranks, and
/// sends the sum to all. While a bucket is added up and goes back, the next one is on its way.
/// Borrows the links and the plan. Extra memory of a rank: kSumWindow buckets. Errors: those of
/// Exchange::wait. All ranks make the same calls with equally many values.
template <class T>
class OrderedSum {
 public:
  /// `on_progress` is called for each bucket.
  OrderedSum(Links& links, const SumPlan& plan, std::uint64_t operation,
             std::function<void()> on_progress)
      : links_(links), plan_(plan), operation_(operation), on_progress_(std::move(on_progress)) {}

  /// Every rank ends with the sum.
  runtime::Status all_reduce(std::span<T> values);

  /// One round of several: adds `values` of the ranks that have a 1 in `adds`. After the last one
  /// the sum of all rounds is in `values`: in this rank's slices, or with `gathers` everywhere;
  /// then `rounds` is as new. Before it `values` stay as they are.
  runtime::Status add_round(std::span<T> values, SumRounds<T>& rounds,
                            std::span<const std::uint8_t> adds, bool last, bool gathers);

  /// Every rank ends with the slices of all as these have them.
  runtime::Status all_gather(std::span<T> values);

 private:
  struct Bucket {
    std::size_t index = 0;
    std::span<T> carry;      // of this rank's slice; empty: nothing is carried
    std::vector<T> addends;  // this rank's slice as every rank has it, one after the other
    std::unique_ptr<Exchange> scattered;
    std::unique_ptr<Exchange> gathered;
  };

  runtime::Status run(std::span<T> values);
  bool adds(int rank) const { return adds_.empty() || adds_[static_cast<std::size_t>(rank)] != 0; }
  std::span<T> slice_of(const Bucket& bucket, int rank) const;
  std::span<T> addend(Bucket& bucket, int rank) const;
  void scatter(Bucket& bucket) const;
  void add(Bucket& bucket) const;
  void gather(Bucket& bucket) const;

  Links& links_;
  const SumPlan& plan_;
  const std::uint64_t operation_;
  const std::function<void()> on_progress_;
  std::span<T> values_;
  std::span<const std::uint8_t> adds_;  // empty: all
  std::span<T> carry_;
  bool sums_ = true;
  bool begun_ = false;  // carry_ holds something
  bool last_ = true;
  bool kept_ = false;
  bool gathers_ = true;
};

extern template void add_terms(std::span<float> into, bool begun,
                               std::span<const std::span<const float>> terms);
extern template class OrderedSum<float>;
extern template class OrderedSum<double>;

}  // namespace rl
