#include "rl/model/shared_beginnings.h"

#include <algorithm>

namespace rl {
namespace {

constexpr std::int64_t kLeastPart = 16;  // of all tokens, one in this many

}  // namespace

std::vector<std::int64_t> shared_beginnings(
    const PackedBatch& batch, const std::function<bool(std::size_t, std::size_t)>& alike) {
  std::vector<std::int64_t> shared(static_cast<std::size_t>(batch.sequences()), 0);
  std::int64_t saved = 0;
  for (std::size_t b = 1; b < shared.size(); ++b) {
    if (!alike(b - 1, b)) continue;
    const auto ids = batch.ids.begin();
    const auto begin = ids + batch.cu_seqlens[b];
    shared[b] =
        std::mismatch(begin, ids + batch.cu_seqlens[b + 1], ids + batch.cu_seqlens[b - 1], begin)
            .first -
        begin;
    saved += shared[b];
  }
  if (saved * kLeastPart < batch.tokens()) std::fill(shared.begin(), shared.end(), 0);
  return shared;
}

}  // namespace rl
