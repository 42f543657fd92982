#include "rl/algo/advantage_estimator.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "rl/algo/custom_advantage.h"
#include "rl/config/custom_choices.h"
#include "runtime/core/check.h"

namespace rl {
namespace {

using enum AdvantageEstimator;

// A baseline that was taken off is all the normalisation that there is. GRPO, GDPO and GPG do with
// a single response, in verl too, but not as a remainder. Its advantage would be of another scale
// than the others'. So it may be with an estimator of the user's.
constexpr EstimatorTraits kTraits[] = {
    {.estimator = kCodapo,
     .name = "codapo",
     .group_size_min = 2,
     .remainder_min = 2,
     .steps_per_batch = 2},
    {.estimator = kDisco, .name = "disco", .group_size_min = 2, .remainder_min = 2},
    {.estimator = kGae,
     .name = "gae",
     .is_per_token = true,
     .needs_critic = true,
     .is_whitened = true},
    {.estimator = kGdpo, .name = "gdpo", .does_with_one = true, .remainder_min = 2},
    {.estimator = kGpg, .name = "gpg", .does_with_one = true, .remainder_min = 2},
    {.estimator = kGrpo, .name = "grpo", .does_with_one = true, .remainder_min = 2},
    {.estimator = kGrpoPassk, .name = "grpo_passk", .group_size_min = 2, .remainder_min = 2},
    {.estimator = kOpo, .name = "opo", .group_size_min = 2, .remainder_min = 2},
    {.estimator = kOptimalTokenBaseline,
     .name = "optimal_token_baseline",
     .is_per_token = true,
     .needs_probabilities = true,
     .group_size_min = 2,
     .remainder_min = 2},
    {.estimator = kReinforcePlusPlus,
     .name = "reinforce_plus_plus",
     .is_per_token = true,
     .is_whitened = true},
    {.estimator = kReinforcePlusPlusBaseline,
     .name = "reinforce_plus_plus_baseline",
     .group_size_min = 2,
     .remainder_min = 2},
    {.estimator = kRemax, .name = "remax", .is_per_token = true, .needs_greedy_response = true},
    {.estimator = kRloo, .name = "rloo", .group_size_min = 2, .remainder_min = 2},
    {.estimator = kTirOptimalTokenBaseline,
     .name = "tir_optimal_token_baseline",
     .is_per_token = true,
     .needs_probabilities = true,
     .group_size_min = 2,
     .remainder_min = 2},
    {.estimator = kCustom, .name = "own", .remainder_min = 2},
};

// verl's faster code for the same.
constexpr std::pair<std::string_view, AdvantageEstimator> kOtherNames[] = {
    {"grpo_vectorized", kGrpo}, {"rloo_vectorized", kRloo}};

}  // namespace

runtime::Result<AdvantageEstimator> parse_advantage_estimator(std::string_view name) {
  std::vector<std::string> known;
  for (const EstimatorTraits& traits : kTraits) {
    if (traits.estimator == kCustom) continue;  // which have their own names
    if (traits.name == name) return traits.estimator;
    known.emplace_back(traits.name);
  }
  for (const auto& [other, estimator] : kOtherNames) {
    if (other == name) return estimator;
    known.emplace_back(other);
  }
  if (find_custom_advantages(name) != nullptr) return kCustom;
  std::sort(known.begin(), known.end());
  for (const std::string& own : added_choices("algorithm.adv_estimator")) known.push_back(own);
  std::string names;
  for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
  return runtime::invalid_argument("advantage estimator \"" + std::string(name) + "\" is none of " +
                                   names +
                                   "; register a custom one in main before run(), in workers too");
}

const EstimatorTraits& traits_of(AdvantageEstimator estimator) {
  const auto* const found =
      std::find_if(std::begin(kTraits), std::end(kTraits),
                   [&](const EstimatorTraits& traits) { return traits.estimator == estimator; });
  CHECK(found != std::end(kTraits));
  return *found;
}

std::string_view to_string(AdvantageEstimator estimator) { return traits_of(estimator).name; }

}  // namespace rl
