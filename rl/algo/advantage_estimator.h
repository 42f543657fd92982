// The ways to turn rewards into advantages, by verl's names for them. The formulas are in
// group_advantage.h and token_advantage.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/result.h"

namespace rl {

/// Where advantages come from: verl's `algorithm.adv_estimator`.
enum class AdvantageEstimator {
  kGrpo,       // "grpo": a response's score against those of its group; arXiv:2402.03300
  kGdpo,       // "gdpo": as grpo, but each of the rewards that make up a score by itself;
               // arXiv:2601.05242
  kGrpoPassk,  // "grpo_passk": only the best of a group is credited; arXiv:2503.19595
  kRloo,       // "rloo": against the mean of the group's others; arXiv:2402.14740
  kOpo,        // "opo": against the group's mean weighted by lengths; arXiv:2505.23585
  kGpg,        // "gpg": against the group's mean, by the share of responses that scored at all;
               // arXiv:2504.02546
  kReinforcePlusPlus,          // "reinforce_plus_plus": discounted returns of tokens, whitened;
                               // arXiv:2501.03262
  kReinforcePlusPlusBaseline,  // "reinforce_plus_plus_baseline": against the group's mean,
                               // whitened; arXiv:2501.03262
  kRemax,  // "remax": against the greedy response to the same prompt; arXiv:2310.10505
  kOptimalTokenBaseline,  // "optimal_token_baseline": against the group's returns, token by token,
                          // weighted by how much each response's gradient varies
  kTirOptimalTokenBaseline,  // "tir_optimal_token_baseline": the same, where tools speak in
                             // between: the k-th learned token against the k-th
  kCodapo,  // "codapo": as grpo, times how much there is to learn from the prompt; arXiv:2606.07950
  kDisco,   // "disco": right or wrong, for the policy loss of that name; arXiv:2505.12366
  kGae,     // "gae": PPO's, from a critic's values; arXiv:1506.02438
  kCustom,  // what register_advantage_estimator() has named
};

/// kInvalidArgument names them all.
runtime::Result<AdvantageEstimator> parse_advantage_estimator(std::string_view name);
std::string_view to_string(AdvantageEstimator estimator);

/// What one needs of a run, and gives to it. All that is asked of an estimator elsewhere than where
/// its formula is chosen (make_credit, estimate_tokens) is asked here.
struct EstimatorTraits {
  AdvantageEstimator estimator;
  std::string_view name;
  /// Advantages differ within a response: they are worked out where its tokens are.
  bool is_per_token = false;
  /// They are worked out from a critic's values.
  bool needs_critic = false;
  /// ... from the score of the greedy response to the same prompt.
  bool needs_greedy_response = false;
  /// ... from the policy's probabilities, see Probabilities in token_estimates.h.
  bool needs_probabilities = false;
  /// Advantages of tokens are whitened over the step, rather than used as they are.
  bool is_whitened = false;
  /// The fewest responses to a prompt that give it something to compare with.
  std::int64_t group_size_min = 1;
  /// A response of a prompt that has a single one has nothing to be compared with, and its score is
  /// its advantage.
  bool does_with_one = false;
  /// The fewest responses to a prompt that may be left of a group, for advantages of one scale.
  std::int64_t remainder_min = 1;
  /// Steps on the prompts of one batch of the data.
  std::int64_t steps_per_batch = 1;
};

const EstimatorTraits& traits_of(AdvantageEstimator estimator);

}  // namespace rl
