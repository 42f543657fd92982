// Private to rl/rollout: what one sequence computes in a step.
#pragma once

#include <cstdint>
#include <span>

namespace rl {

/// Tokens of one sequence in a step: one when decoding, several when a prompt is read.
struct StepSequence {
  std::span<const std::int32_t> tokens;
  std::span<const std::int32_t> blocks;  // covers first_position + tokens.size() positions
  std::int64_t first_position = 0;       // positions before it are in the cache
  std::int64_t length_max = 0;           // that the sequence may reach; 0: what it has now
};

}  // namespace rl
