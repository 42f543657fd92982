#include "rl/run/rl/credit_factory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "rl/algo/response_estimator.h"
#include "rl/run/rl/codapo_credit.h"
#include "rl/run/rl/response_credit.h"
#include "rl/run/rl/token_credit.h"
#include "runtime/core/log.h"

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
                                              const CreditCalls& calls, std::int64_t data_rows,
                                              CreditParts& parts) {
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
                                         .data_rows = data_rows,
                                         .settings = settings});
  parts.chosen_rows = [&codapo = *codapo] { return codapo.focus(); };
  return codapo;
}

void warn_of_single_samples(const TrainerOptions& options) {
  if (!options.estimator->traits().does_with_one || options.samples_per_prompt != 1) return;
  LOG(warn,
      "actor_rollout_ref.rollout.n is 1: there is no group to compare a response with, so that "
      "its score is its advantage; set it to 4 or more");
}

}  // namespace

CreditParts make_credit(const TrainerOptions& options, const CreditCalls& calls,
                        std::int64_t data_rows) {
  warn_of_single_samples(options);
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
  std::unique_ptr<CreditAssigner> assigner = make_assigner(options, calls, data_rows, parts);
  parts.phase = std::make_unique<CreditPhase>(use, RewardShaper(std::move(scaler), std::move(kl)),
                                              std::move(assigner));
  return parts;
}

}  // namespace rl
