#include "rl/algo/group_scores.h"

#include <cmath>
#include <unordered_map>

#include "runtime/core/check.h"

namespace rl {

std::vector<GroupMembers> members_of(std::span<const float> scores, Groups groups) {
  CHECK(scores.size() == groups.size());
  std::unordered_map<std::int64_t, std::size_t> slots;
  std::vector<GroupMembers> members;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [slot, added] = slots.emplace(groups[i], members.size());
    if (added) members.emplace_back();
    members[slot->second].push_back(i);
  }
  return members;
}

double group_mean(std::span<const float> scores, const GroupMembers& group) {
  double sum = 0.0;
  for (const std::size_t i : group) sum += scores[i];
  return sum / static_cast<double>(group.size());
}

double group_deviation(std::span<const float> scores, const GroupMembers& group) {
  const double centre = group_mean(scores, group);
  double sum = 0.0;
  for (const std::size_t i : group) sum += (scores[i] - centre) * (scores[i] - centre);
  return std::sqrt(sum / static_cast<double>(group.size() - 1));
}

std::vector<float> minus_group_mean(std::span<const float> scores, Groups groups) {
  return minus_baseline(scores, groups,
                        [&](const GroupMembers& group) { return group_mean(scores, group); });
}

std::vector<float> whitened_over_tokens(std::vector<float> advantages,
                                        std::span<const std::int64_t> lengths) {
  double tokens = 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    tokens += static_cast<double>(lengths[i]);
    sum += static_cast<double>(lengths[i]) * advantages[i];
  }
  if (tokens < 2.0) return advantages;
  const double centre = sum / tokens;
  double squares = 0.0;
  for (std::size_t i = 0; i < advantages.size(); ++i) {
    squares +=
        static_cast<double>(lengths[i]) * (advantages[i] - centre) * (advantages[i] - centre);
  }
  const double scale = std::sqrt(squares / (tokens - 1.0) + 1e-8);
  for (float& advantage : advantages) advantage = static_cast<float>((advantage - centre) / scale);
  return advantages;
}

}  // namespace rl
