#include "runtime/store/range_set.h"

#include <algorithm>
#include <iterator>

#include "runtime/core/check.h"

namespace runtime {

void RangeSet::add(ByteRange range) {
  if (range.size == 0) return;
  bytes_ += range.size;
  auto after = ranges_.lower_bound(range.begin);
  CHECK(after == ranges_.end() || range.end() <= after->first);
  if (after != ranges_.begin()) {
    auto before = std::prev(after);
    CHECK(before->first + before->second <= range.begin);
    if (before->first + before->second == range.begin) {
      range = {before->first, before->second + range.size};
      ranges_.erase(before);
    }
  }
  if (after != ranges_.end() && range.end() == after->first) {
    range.size += after->second;
    after = ranges_.erase(after);
  }
  ranges_.emplace_hint(after, range.begin, range.size);
}

std::optional<ByteRange> RangeSet::take(std::uint64_t size) {
  auto found = std::find_if(ranges_.begin(), ranges_.end(),
                            [size](const auto& range) { return range.second >= size; });
  if (found == ranges_.end()) return std::nullopt;
  ByteRange taken{found->first, size};
  ByteRange rest{found->first + size, found->second - size};
  ranges_.erase(found);
  if (rest.size > 0) ranges_.emplace(rest.begin, rest.size);
  bytes_ -= size;
  return taken;
}

std::optional<ByteRange> RangeSet::take_last(std::uint64_t size) {
  if (ranges_.empty()) return std::nullopt;
  auto last = std::prev(ranges_.end());
  std::uint64_t taken = std::min(size, last->second);
  ByteRange range{last->first + last->second - taken, taken};
  last->second -= taken;
  if (last->second == 0) ranges_.erase(last);
  bytes_ -= taken;
  return range;
}

std::uint64_t RangeSet::largest() const {
  std::uint64_t largest = 0;
  for (const auto& [begin, size] : ranges_) largest = std::max(largest, size);
  return largest;
}

}  // namespace runtime
