#include "rl/run/rl/credit_factory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rl/algo/response_estimator.h"
#include "rl/run/rl/codapo_credit.h"
#include "rl/run/rl/response_credit.h"
#include "rl/run/rl/token_credit.h"

namespace rl {
namespace {

std::unique_ptr<ScoreReader> make_reader(const TrainerOptions& options, const CreditCalls& calls) {
  const EstimatorTraits& traits = options.estimator->traits();
  if (traits.needs_greedy_response)
    return std::make_unique<GreedyBaseline>(calls.policy, calls.reward);
  if (traits.needs_components) {
    return std::make_unique<ScoreComponents>(options.gdpo_keys, "algorithm.gdpo_reward_keys",
                                             /*score_stands_in=*/false);
  }
  if (traits.revisits_prompts) {
    return std::make_unique<ScoreComponents>(
        std::vector<std::string>{options.codapo.accuracy_key}, "algorithm.codapo_accuracy_key",
        /*score_stands_in=*/options.codapo.accuracy_key == "acc");
  }
  return std::make_unique<ScoreReader>();
}

// Sets what else of `parts` depends on the assigner.
std::unique_ptr<CreditAssigner> make_assigner(const TrainerOptions& options,
                                              const CreditCalls& calls, CreditParts& parts) {
  const EstimatorTraits& traits = options.estimator->traits();
  const ResponseEstimator* of_responses = options.estimator->of_responses();
  if (of_responses == nullptr) {
    return std::make_unique<TokenCredit>(
        TokenCreditOptions{.has_critic = traits.needs_critic, .whitens = traits.is_whitened},
        calls.estimates);
  }
  const ResponseSettings settings{.normalize_by_std = options.normalize_by_std,
                                  .component_weights = options.gdpo_weights,
                                  .prompt_value_offset = options.codapo.weight_offset};
  if (!traits.revisits_prompts) return std::make_unique<ResponseCredit>(*of_responses, settings);
  auto codapo = std::make_unique<CodapoCredit>(
      *of_responses, CodapoCreditOptions{.top_k = options.codapo.top_k,
                                         .batch_prompts = options.batch_prompts,
                                         .settings = settings});
  parts.chosen_rows = [&codapo = *codapo] { return codapo.focus(); };
  return codapo;
}

}  // namespace

CreditParts make_credit(const TrainerOptions& options, const CreditCalls& calls) {
  const SampleUseOptions use{.pf_ppo = options.pf_ppo,
                             .mask_truncated = options.mask_truncated,
                             .positive_score = options.positive_score,
                             .seed = options.seed};
  std::optional<RewardScaler> scaler;
  if (options.reward_scaling.enabled()) scaler.emplace(options.reward_scaling);
  std::optional<KlInReward> kl;
  if (options.kl_in_reward) kl.emplace(options.kl_control);
  CreditParts parts{.reader = make_reader(options, calls),
                    .group_size_min = std::min(options.estimator->traits().remainder_min,
                                               options.samples_per_prompt)};
  if (options.estimator->traits().needs_critic) parts.critic_warmup = options.critic_warmup;
  std::unique_ptr<CreditAssigner> assigner = make_assigner(options, calls, parts);
  parts.phase = std::make_unique<CreditPhase>(use, RewardShaper(std::move(scaler), std::move(kl)),
                                              std::move(assigner));
  return parts;
}

}  // namespace rl
