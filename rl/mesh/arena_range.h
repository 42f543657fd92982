// A stretch of a parameter arena; without torch, for code that works on the numbers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rl {

/// Parameters begin on multiples of this many elements in an arena: 64 bytes, a cache line and a
/// vector register. Its size is one, too.
inline constexpr std::int64_t kArenaAlignment = 16;

/// Elements [begin, end) of an arena.
struct ArenaRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }

  bool operator==(const ArenaRange&) const = default;
};

/// What of an arena is in the range.
template <class T>
std::span<T> part_of(std::span<T> arena, const ArenaRange& range) {
  return arena.subspan(static_cast<std::size_t>(range.begin),
                       static_cast<std::size_t>(range.size()));
}

/// The first multiple of `unit` from `value` on.
constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t unit = kArenaAlignment) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace rl
