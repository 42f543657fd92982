// DAPO's soft punishment of responses that come near the length limit.
#pragma once

#include <cstdint>

#include "rl/config/config.h"
#include "runtime/core/result.h"

namespace rl {

/// Soft overlong punishment; Yu et al. 2025, arXiv:2503.14476, equation 13: nothing up to
/// `response_max` - `buffer` tokens, then falling linearly, by `factor` at `response_max`.
struct LengthPenalty {
  bool enabled = false;
  std::int64_t response_max = 0;  // tokens
  std::int64_t buffer = 0;        // tokens
  double factor = 1.0;
  bool log = false;  // reward/overlong and reward/overlong_reward among the metrics

  /// reward.reward_kwargs.overlong_buffer_cfg.* and .max_resp_len (null: data.max_response_length).
  /// kInvalidArgument: out of range.
  static runtime::Result<LengthPenalty> from_config(const Config& config);

  /// The number to add to the score: 0 or less.
  double of(std::int64_t response_tokens) const;
};

}  // namespace rl
