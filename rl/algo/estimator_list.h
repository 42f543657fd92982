// The estimators there are, by verl's names. Each is defined in estimator_NAME.cpp, and is a row of
// the factory in advantage_estimator.cpp.
#pragma once

#include "rl/algo/advantage_estimator.h"

namespace rl {

// Of responses: the formulas are in group_advantage.h.

/// As grpo, times how much there is to learn from the prompt; arXiv:2606.07950, estimator_codapo.h.
const AdvantageEstimator& codapo_estimator();
/// Right or wrong, for the policy loss of that name; arXiv:2505.12366.
const AdvantageEstimator& disco_estimator();
/// As grpo, but each of the rewards that make up a score by itself; arXiv:2601.05242.
const AdvantageEstimator& gdpo_estimator();
/// Against the group's mean, by the share of responses that scored at all; arXiv:2504.02546.
const AdvantageEstimator& gpg_estimator();
/// A response's score against those of its group; arXiv:2402.03300.
const AdvantageEstimator& grpo_estimator();
/// Only the best of a group is credited; arXiv:2503.19595.
const AdvantageEstimator& grpo_passk_estimator();
/// Against the group's mean weighted by lengths; arXiv:2505.23585.
const AdvantageEstimator& opo_estimator();
/// Against the group's mean, whitened; arXiv:2501.03262.
const AdvantageEstimator& reinforce_plus_plus_baseline_estimator();
/// Against the mean of the group's others; arXiv:2402.14740.
const AdvantageEstimator& rloo_estimator();

// Of tokens: the formulas are in token_advantage.h and estimator_token_baseline.h.

/// PPO's, from a critic's values; arXiv:1506.02438.
const AdvantageEstimator& gae_estimator();
/// Against the group's returns, token by token, weighted by how much each response's gradient
/// varies. Each place of a response is compared with the same place (estimator_token_baseline.cpp).
const AdvantageEstimator& optimal_token_baseline_estimator();
/// The same, where tools speak in between: the k-th learned token against the k-th.
const AdvantageEstimator& tir_optimal_token_baseline_estimator();
/// Discounted returns of tokens, whitened; arXiv:2501.03262.
const AdvantageEstimator& reinforce_plus_plus_estimator();
/// Against the greedy response to the same prompt; arXiv:2310.10505.
const AdvantageEstimator& remax_estimator();

}  // namespace rl
