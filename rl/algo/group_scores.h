// Scores by the group that their responses belong to: what formulas of group_advantage.h share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rl/algo/group_advantage.h"

namespace rl {

inline constexpr double kDeviationEpsilon = 1e-6;  // added to standard deviations

/// Indices of the responses of one group.
using GroupMembers = std::vector<std::size_t>;

/// Those of each group, by where it begins. Lists of different lengths are a bug of the caller.
std::vector<GroupMembers> members_of(std::span<const float> scores, Groups groups);

double group_mean(std::span<const float> scores, const GroupMembers& group);

/// The sample standard deviation of a group of at least two.
double group_deviation(std::span<const float> scores, const GroupMembers& group);

/// Takes a baseline, `baseline(members)`, off the scores of each group of at least two; a response
/// alone has none.
template <class Baseline>
std::vector<float> minus_baseline(std::span<const float> scores, Groups groups, Baseline baseline) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const GroupMembers& group : members_of(scores, groups)) {
    if (group.size() < 2) continue;
    const double centre = baseline(group);
    for (const std::size_t i : group) advantages[i] = static_cast<float>(scores[i] - centre);
  }
  return advantages;
}

/// The same with the group's mean as baseline.
std::vector<float> minus_group_mean(std::span<const float> scores, Groups groups);

/// Takes off the mean over all tokens of the batch and divides by their standard deviation; every
/// token has its response's advantage.
std::vector<float> whitened_over_tokens(std::vector<float> advantages,
                                        std::span<const std::int64_t> lengths);

}  // namespace rl
