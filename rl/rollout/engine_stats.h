// EngineStats: counters of a rollout engine.
#pragma once

#include <cstdint>

namespace rl {

/// What the engine did since it was made.
struct EngineStats {
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;  // rows spent on reading tokens that were known; prompts once per
                                   // request, plus preemptions
  std::int64_t cached_tokens = 0;  // known tokens that the prefix cache had, and that took no row
  std::int64_t generated_tokens = 0;
  std::int64_t preemptions =
      0;                   // sequences whose cache was dropped or swapped out for lack of blocks
  std::int64_t swaps = 0;  // those of them that were swapped out
  std::int64_t blocks_peak = 0;     // cache blocks in use at once
  std::int64_t prefix_blocks = 0;   // blocks that the prefix cache knows now
  std::int64_t evicted_blocks = 0;  // blocks that it gave up
};

}  // namespace rl
