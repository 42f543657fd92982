// RangeSet: a set of disjoint byte ranges, to allocate from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace runtime {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t end() const { return begin + size; }
  bool operator==(const ByteRange&) const = default;
};

/// Neighbours are merged. Cost: logarithmic to add, linear in the number of ranges to take.
class RangeSet {
 public:
  /// Adds a range that overlaps none that is held (a bug otherwise).
  void add(ByteRange range);
  /// Takes `size` bytes from the lowest range that has them.
  std::optional<ByteRange> take(std::uint64_t size);
  /// Takes up to `size` bytes from the end of the highest range.
  std::optional<ByteRange> take_last(std::uint64_t size);
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t largest() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> size
  std::uint64_t bytes_ = 0;
};

}  // namespace runtime
