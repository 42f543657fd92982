// CoDaPO's value of a prompt for learning; 2026, arXiv:2606.07950. It depends on how sure the
// policy is of its responses and how many of them are right. Plain numbers, without torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rl/algo/group_advantage.h"

namespace rl {

/// Let c be the geometric mean of the responses' mean token probabilities: exp of the mean of
/// `mean_logprobs`, the means over their tokens. Let d be the share of them that is wrong. The
/// value of a prompt, for each of its responses, is c (1 - 4 (d - 1/2)^2). From 0, where all are
/// right or all wrong, to 1. `right` has a 1 for each right response.
std::vector<double> codapo_values(std::span<const float> mean_logprobs,
                                  std::span<const std::uint8_t> right, Groups groups);

/// GRPO's advantages, each times its prompt's value plus `offset`.
std::vector<float> codapo_advantages(std::span<const float> scores, std::span<const double> values,
                                     Groups groups, double offset, bool normalize_by_std = true);

/// The `count` groups of the largest values, largest first, the earlier among equals, and again
/// from the first until there are `places` of them.
std::vector<std::int64_t> codapo_focus(std::span<const double> values, Groups groups,
                                       std::int64_t count, std::int64_t places);

}  // namespace rl
