// Reading of files in pieces, by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/core/status.h"

namespace rl {

/// Elements that are read at a time: a whole number of every dtype's blocks.
inline constexpr std::int64_t kReadElements = 1 << 20;

/// Calls `read(i)` once for each i below `count`, on the calling thread and up to `helpers` others.
/// A thread takes the next piece as it gets free, since tensors differ too much for equal shares.
/// Returns the first failure, after all pieces; kResourceExhausted: `read` has thrown, for want of
/// memory.
runtime::Status read_pieces(std::size_t count, std::size_t helpers,
                            const std::function<runtime::Status(std::size_t)>& read);

}  // namespace rl
