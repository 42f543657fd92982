#include "rl/comm/sum_plan.h"

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {

SumPlan SumPlan::of_buckets(std::size_t values, int ranks, std::size_t bucket) {
  CHECK(bucket > 0);
  SumPlan plan;
  plan.values_ = values;
  plan.ranks_ = static_cast<std::size_t>(ranks);
  plan.bucket_ = bucket;
  plan.buckets_ = (values + bucket - 1) / bucket;
  return plan;
}

SumPlan SumPlan::of_homes(std::span<const ArenaRange> homes, std::size_t bucket) {
  SumPlan plan;
  plan.homes_.assign(homes.begin(), homes.end());
  plan.ranks_ = homes.size();
  plan.bucket_ = std::max<std::size_t>(bucket / homes.size(), 1);
  for (const ArenaRange& home : homes) {
    const auto size = static_cast<std::size_t>(home.size());
    plan.buckets_ = std::max(plan.buckets_, (size + plan.bucket_ - 1) / plan.bucket_);
  }
  return plan;
}

SumPlan::Slice SumPlan::slice(std::size_t bucket, int rank) const {
  const auto at = static_cast<std::size_t>(rank);
  if (homes_.empty()) {
    const std::size_t begin = bucket * bucket_;
    const Slice part = deal(std::min(bucket_, values_ - begin), ranks_, at);
    return {begin + part.begin, begin + part.end};
  }
  const auto begin = static_cast<std::size_t>(homes_[at].begin);
  const auto end = static_cast<std::size_t>(homes_[at].end);
  return {std::min(begin + bucket * bucket_, end), std::min(begin + (bucket + 1) * bucket_, end)};
}

std::size_t SumPlan::elements_of(int rank) const {
  std::size_t elements = 0;
  for (std::size_t bucket = 0; bucket < buckets_; ++bucket) elements += slice(bucket, rank).size();
  return elements;
}

}  // namespace rl
