// Dealing things in order to parts that differ by one at most.
#pragma once

#include <algorithm>

#include "runtime/core/check.h"

namespace rl {

/// Things [begin, end).
template <class Int>
struct Dealt {
  Int begin = 0;
  Int end = 0;

  Int size() const { return end - begin; }
  bool operator==(const Dealt&) const = default;
};

/// Part `index` of `count` things dealt to `parts` in order: the first ones get one more where they
/// do not divide.
template <class Int>
Dealt<Int> deal(Int count, Int parts, Int index) {
  CHECK(parts > 0);
  CHECK(index >= 0);
  CHECK(index < parts);
  const Int least = count / parts;
  const Int larger = count % parts;
  const Int begin = index * least + std::min(index, larger);
  return {begin, begin + least + (index < larger ? 1 : 0)};
}

}  // namespace rl
