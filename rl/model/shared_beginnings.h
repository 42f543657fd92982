// The tokens of a packed batch that need not be computed again. Samples of one prompt begin alike,
// and a token's numbers depend on nothing behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rl/model/packed_batch.h"

namespace rl {

/// For each sequence, how many leading tokens are those of the sequence before it; [B], the first
/// 0. `alike` says whether two neighbours may share at all (their angles are the same). All 0 where
/// less than a sixteenth of the tokens is saved: gathering keys would cost as much.
std::vector<std::int64_t> shared_beginnings(
    const PackedBatch& batch, const std::function<bool(std::size_t, std::size_t)>& alike);

}  // namespace rl
