#include "rl/run/rl/credit_factory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rl/run/rl/codapo_credit.h"
#include "rl/run/rl/response_credit.h"
#include "rl/run/rl/token_credit.h"

namespace rl {
namespace {

std::unique_ptr<ScoreReader> make_reader(const TrainerOptions& options, const CreditCalls& calls) {
  switch (options.estimator) {
    case AdvantageEstimator::kRemax:
      return std::make_unique<GreedyBaseline>(calls.policy, calls.reward);
    case AdvantageEstimator::kGdpo:
      return std::make_unique<ScoreComponents>(options.gdpo_keys, "algorithm.gdpo_reward_keys",
                                               /*score_stands_in=*/false);
    case AdvantageEstimator::kCodapo:
      return std::make_unique<ScoreComponents>(
          std::vector<std::string>{options.codapo.accuracy_key}, "algorithm.codapo_accuracy_key",
          /*score_stands_in=*/options.codapo.accuracy_key == "acc");
    default: return std::make_unique<ScoreReader>();
  }
}

// Sets what else of `parts` depends on the assigner.
std::unique_ptr<CreditAssigner> make_assigner(const TrainerOptions& options,
                                              const CreditCalls& calls, CreditParts& parts) {
  switch (options.estimator) {
    case AdvantageEstimator::kGdpo:
      return std::make_unique<ResponseCredit>(
          component_formula(options.gdpo_weights, options.normalize_by_std));
    case AdvantageEstimator::kDisco: return std::make_unique<ResponseCredit>(label_formula());
    case AdvantageEstimator::kCodapo: {
      auto codapo = std::make_unique<CodapoCredit>(
          CodapoCreditOptions{.top_k = options.codapo.top_k,
                              .weight_offset = options.codapo.weight_offset,
                              .batch_prompts = options.batch_prompts,
                              .normalize_by_std = options.normalize_by_std});
      parts.chosen_rows = [&codapo = *codapo] { return codapo.focus(); };
      return codapo;
    }
    case AdvantageEstimator::kCustom:
      return std::make_unique<ResponseCredit>(custom_formula(options.own_advantages));
    default: break;
  }
  const EstimatorTraits& traits = traits_of(options.estimator);
  if (!traits.is_per_token)
    return std::make_unique<ResponseCredit>(
        group_formula(options.estimator, options.normalize_by_std));
  return std::make_unique<TokenCredit>(
      TokenCreditOptions{.has_critic = traits.needs_critic, .whitens = traits.is_whitened},
      calls.estimates);
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
                    .group_size_min = std::min(traits_of(options.estimator).remainder_min,
                                               options.samples_per_prompt)};
  if (traits_of(options.estimator).needs_critic) parts.critic_warmup = options.critic_warmup;
  std::unique_ptr<CreditAssigner> assigner = make_assigner(options, calls, parts);
  parts.phase = std::make_unique<CreditPhase>(use, RewardShaper(std::move(scaler), std::move(kl)),
                                              std::move(assigner));
  return parts;
}

}  // namespace rl
