// A loop over elements on a pool's threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rl/kernel/thread_pool.h"

namespace rl {

/// compute(i) of each i below `count`, on the pool's threads. Borrows all; `compute` is called from
/// several threads at once.
template <class Compute>
void for_each_element(kernel::ThreadPool& pool, std::int64_t count, Compute compute) {
  constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 16;
  pool.parallel_for(count, kElementsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) compute(static_cast<std::size_t>(i));
  });
}

}  // namespace rl
