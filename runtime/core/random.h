// The process's source of chance.
#pragma once

#include <cstddef>
#include <span>

namespace runtime {

/// Fresh and unpredictable bytes from the kernel; in a simulation from its seed. At most 256 at a
/// time.
void fill_random(std::span<std::byte> out);

}  // namespace runtime
