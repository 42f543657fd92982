// The values that ranks with parts of an arena exchange besides the arena itself.
#pragma once

#include <span>

#include "rl/comm/communicator.h"
#include "rl/kernel/thread_pool.h"
#include "rl/mesh/packed_ranges.h"
#include "runtime/core/result.h"

namespace rl {

/// The norm of values that each rank has its home of, packed; homes are of whole chunks of
/// kNormChunk. The bits of l2_norm() over all of them in the arena's order, on every rank. Errors:
/// those of Communicator.
runtime::Result<double> norm_of_homes(Communicator& communicator, kernel::ThreadPool& pool,
                                      std::span<const PackedRanges> homes,
                                      std::span<const float> of_home);

/// Brings packed values of all homes together on rank 0, in `whole`, an arena that is empty
/// elsewhere. They come in pieces, each of which is a sign of progress. Errors: those of
/// Communicator.
runtime::Status collect_homes(Communicator& communicator, std::span<const PackedRanges> homes,
                              std::span<const float> of_home, std::span<float> whole);

}  // namespace rl
