// Advantages from the scores of several responses to one prompt. Scores are metadata, so these are
// plain vectors without torch. Every function takes one score and one group per response. It
// returns one advantage per response in units of score (or of the group's standard deviation). All
// tokens of a response share it. `groups` are any ids, equal for responses to one prompt. Each
// function stands in the file of its estimator, estimator_NAME.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rl {

using Groups = std::span<const std::int64_t>;

/// GRPO: score minus the group's mean, over the group's sample standard deviation; Shao et al.
/// 2024, arXiv:2402.03300, section 4.1. Without `normalize_by_std` it is Dr.GRPO's; Liu et al.
/// 2025, arXiv:2503.20783. A group of one keeps its score.
std::vector<float> grpo_advantages(std::span<const float> scores, Groups groups,
                                   bool normalize_by_std = true);

/// RLOO: score minus the mean of the group's other scores; Ahmadian et al. 2024, arXiv:2402.14740.
/// A group of one keeps its score.
std::vector<float> rloo_advantages(std::span<const float> scores, Groups groups);

/// OPO: score minus the group's mean weighted by response lengths (in tokens), the baseline of
/// least variance; Hao et al. 2025, arXiv:2505.23585. A group of one keeps its score.
std::vector<float> opo_advantages(std::span<const float> scores, Groups groups,
                                  std::span<const std::int64_t> lengths);

/// GPG: score minus the group's mean, times the number of responses over the number of those whose
/// score is not 0 (at least 1). So a batch of few successes weighs as much as one of many; Chu et
/// al. 2025, arXiv:2504.02546. A group of one keeps its score, so scaled.
std::vector<float> gpg_advantages(std::span<const float> scores, Groups groups);

/// Pass@k GRPO: only the best response of a group is credited, by its lead over the second best;
/// Chen et al. 2025, arXiv:2503.19595. Groups need two responses or more; a smaller one is a bug of
/// the caller.
std::vector<float> grpo_passk_advantages(std::span<const float> scores, Groups groups,
                                         bool normalize_by_std = true);

/// REINFORCE++ with the group's mean as baseline, whitened over all tokens of the batch; Hu 2025,
/// arXiv:2501.03262.
std::vector<float> reinforce_plus_plus_baseline_advantages(std::span<const float> scores,
                                                           Groups groups,
                                                           std::span<const std::int64_t> lengths);

/// GDPO compares each of the rewards that make up a score within the group, as GRPO does. It
/// weights and adds them, and whitens the sum over all tokens of the batch. A reward of small
/// spread is not drowned by one of large spread. `components[k]` are the k-th reward of all
/// responses, `weights` one of each (empty: all 1); 2026, arXiv:2601.05242.
std::vector<float> gdpo_advantages(std::span<const std::vector<float>> components,
                                   std::span<const double> weights, Groups groups,
                                   std::span<const std::int64_t> lengths,
                                   bool normalize_by_std = true);

/// DisCO's labels: 1 for a score of 1 or more, -1 for one of 0 or less, 0 for what is neither right
/// nor wrong.
std::vector<float> disco_labels(std::span<const float> scores);

}  // namespace rl
