// The guard against fork(): the child has none of a process's connections.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/core/status.h"

namespace runtime {

namespace fork_detail {
inline std::atomic<std::uint64_t> generation{1};
}

/// How often this process came out of fork(), itself or its forebears. What was made in one
/// generation belongs to the parent in the next. Cost: a load.
inline std::uint64_t fork_generation() {
  return fork_detail::generation.load(std::memory_order_relaxed);
}

/// From the first call on, fork() counts generations, and a child gets /dev/null in place of the
/// descriptors below, whose numbers so stay taken. Any thread.
void watch_forks();
/// This descriptor is this process's alone. Until keep_in_child(), which comes before it is closed.
void close_in_child(int descriptor);
void keep_in_child(int descriptor);

/// For calls in a child, with what to do instead.
Status forked_status();

}  // namespace runtime
