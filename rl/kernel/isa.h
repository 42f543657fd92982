// The instruction set that the kernels use.
#pragma once

#include <string_view>
#include <vector>

namespace rl::kernel {

/// A way of running the kernels; all give the same bits.
enum class Isa { kPortable, kAvx2, kAvx512 };

std::string_view to_string(Isa isa);

/// The instruction sets that this machine can run, best last.
std::vector<Isa> supported_isas();

/// The one in use: the best supported, unless the environment's STARLING_ISA (portable, avx2,
/// avx512) asks for less.
Isa current_isa();

/// For tests and benchmarks; not while kernels run. `isa` must be supported.
void set_isa(Isa isa);

}  // namespace rl::kernel
