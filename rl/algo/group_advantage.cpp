#include "rl/algo/group_advantage.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/core/check.h"

namespace rl {
namespace {

constexpr double kDeviationEpsilon = 1e-6;  // added to standard deviations

// Indices of the responses of each group.
using Members = std::vector<std::size_t>;

std::vector<Members> members_of(std::span<const float> scores, Groups groups) {
  CHECK(scores.size() == groups.size());
  std::unordered_map<std::int64_t, std::size_t> slots;
  std::vector<Members> members;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [slot, added] = slots.emplace(groups[i], members.size());
    if (added) members.emplace_back();
    members[slot->second].push_back(i);
  }
  return members;
}

double mean(std::span<const float> scores, const Members& group) {
  double sum = 0.0;
  for (const std::size_t i : group) sum += scores[i];
  return sum / static_cast<double>(group.size());
}

double sample_std(std::span<const float> scores, const Members& group) {
  const double centre = mean(scores, group);
  double sum = 0.0;
  for (const std::size_t i : group) sum += (scores[i] - centre) * (scores[i] - centre);
  return std::sqrt(sum / static_cast<double>(group.size() - 1));
}

// A baseline per group of at least two; a response alone has none.
template <class Baseline>
std::vector<float> minus_baseline(std::span<const float> scores, Groups groups, Baseline baseline) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const Members& group : members_of(scores, groups)) {
    if (group.size() < 2) continue;
    const double centre = baseline(group);
    for (const std::size_t i : group) advantages[i] = static_cast<float>(scores[i] - centre);
  }
  return advantages;
}

// Takes off the mean over all tokens of the batch and divides by their standard deviation; every
// token has its response's advantage.
std::vector<float> whitened(std::vector<float> advantages, std::span<const std::int64_t> lengths) {
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

}  // namespace

std::vector<float> grpo_advantages(std::span<const float> scores, Groups groups,
                                   bool normalize_by_std) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const Members& group : members_of(scores, groups)) {
    const bool alone = group.size() < 2;
    const double centre = alone ? 0.0 : mean(scores, group);
    const double scale =
        normalize_by_std ? (alone ? 1.0 : sample_std(scores, group)) + kDeviationEpsilon : 1.0;
    for (const std::size_t i : group)
      advantages[i] = static_cast<float>((scores[i] - centre) / scale);
  }
  return advantages;
}

std::vector<float> rloo_advantages(std::span<const float> scores, Groups groups) {
  std::vector<float> advantages(scores.begin(), scores.end());
  for (const Members& group : members_of(scores, groups)) {
    if (group.size() < 2) continue;
    const double centre = mean(scores, group);
    const double count = static_cast<double>(group.size());
    // The mean of the others is (n mean - score) / (n - 1).
    for (const std::size_t i : group)
      advantages[i] = static_cast<float>((scores[i] - centre) * count / (count - 1.0));
  }
  return advantages;
}

std::vector<float> opo_advantages(std::span<const float> scores, Groups groups,
                                  std::span<const std::int64_t> lengths) {
  CHECK(lengths.size() == scores.size());
  return minus_baseline(scores, groups, [&](const Members& group) {
    double weighted = 0.0;
    double tokens = 0.0;
    for (const std::size_t i : group) {
      weighted += static_cast<double>(lengths[i]) * scores[i];
      tokens += static_cast<double>(lengths[i]);
    }
    return tokens > 0.0 ? weighted / tokens : mean(scores, group);
  });
}

std::vector<float> gpg_advantages(std::span<const float> scores, Groups groups) {
  std::vector<float> advantages =
      minus_baseline(scores, groups, [&](const Members& group) { return mean(scores, group); });
  const auto successes =
      std::count_if(scores.begin(), scores.end(), [](float score) { return score != 0.0F; });
  const float scale = static_cast<float>(scores.size()) /
                      static_cast<float>(std::max<std::ptrdiff_t>(successes, 1));
  for (float& advantage : advantages) advantage *= scale;
  return advantages;
}

std::vector<float> grpo_passk_advantages(std::span<const float> scores, Groups groups,
                                         bool normalize_by_std) {
  std::vector<float> advantages(scores.size(), 0.0F);
  for (Members& group : members_of(scores, groups)) {
    CHECK(group.size() >= 2);
    std::partial_sort(group.begin(), group.begin() + 2, group.end(),
                      [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    const double lead = scores[group[0]] - scores[group[1]];
    advantages[group[0]] = static_cast<float>(
        normalize_by_std ? lead / (sample_std(scores, group) + kDeviationEpsilon) : lead);
  }
  return advantages;
}

std::vector<float> reinforce_plus_plus_baseline_advantages(std::span<const float> scores,
                                                           Groups groups,
                                                           std::span<const std::int64_t> lengths) {
  CHECK(lengths.size() == scores.size());
  return whitened(
      minus_baseline(scores, groups, [&](const Members& group) { return mean(scores, group); }),
      lengths);
}

std::vector<float> gdpo_advantages(std::span<const std::vector<float>> components,
                                   std::span<const double> weights, Groups groups,
                                   std::span<const std::int64_t> lengths, bool normalize_by_std) {
  CHECK(weights.empty() || weights.size() == components.size());
  std::vector<float> sum(lengths.size(), 0.0F);
  for (std::size_t k = 0; k < components.size(); ++k) {
    CHECK(components[k].size() == lengths.size());
    const std::vector<float> part = grpo_advantages(components[k], groups, normalize_by_std);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<float>(weights.empty() ? 1.0 : weights[k]) * part[i];
  }
  return whitened(std::move(sum), lengths);
}

std::vector<float> disco_labels(std::span<const float> scores) {
  std::vector<float> labels;
  for (const float score : scores)
    labels.push_back(score >= 1.0F ? 1.0F : score <= 0.0F ? -1.0F : 0.0F);
  return labels;
}

std::vector<float> response_advantages(AdvantageEstimator estimator, std::span<const float> scores,
                                       Groups groups, std::span<const std::int64_t> lengths,
                                       bool normalize_by_std) {
  switch (estimator) {
    case AdvantageEstimator::kGrpo: return grpo_advantages(scores, groups, normalize_by_std);
    case AdvantageEstimator::kGrpoPassk:
      return grpo_passk_advantages(scores, groups, normalize_by_std);
    case AdvantageEstimator::kRloo: return rloo_advantages(scores, groups);
    case AdvantageEstimator::kOpo: return opo_advantages(scores, groups, lengths);
    case AdvantageEstimator::kGpg: return gpg_advantages(scores, groups);
    case AdvantageEstimator::kReinforcePlusPlusBaseline:
      return reinforce_plus_plus_baseline_advantages(scores, groups, lengths);
    case AdvantageEstimator::kGdpo:
    case AdvantageEstimator::kReinforcePlusPlus:
    case AdvantageEstimator::kRemax:
    case AdvantageEstimator::kOptimalTokenBaseline:
    case AdvantageEstimator::kTirOptimalTokenBaseline:
    case AdvantageEstimator::kCodapo:
    case AdvantageEstimator::kDisco:
    case AdvantageEstimator::kGae:
    case AdvantageEstimator::kCustom: break;
  }
  runtime::check_failed(__FILE__, __LINE__,
                        "advantages of tokens, of several rewards, or of a program's own");
}

}  // namespace rl
