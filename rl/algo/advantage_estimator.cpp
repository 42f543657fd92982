#include "rl/algo/advantage_estimator.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "rl/algo/own_advantage.h"
#include "rl/config/own_choices.h"

namespace rl {
namespace {

constexpr std::array kEstimatorNames = {
    std::pair{AdvantageEstimator::kCodapo, std::string_view("codapo")},
    std::pair{AdvantageEstimator::kDisco, std::string_view("disco")},
    std::pair{AdvantageEstimator::kGae, std::string_view("gae")},
    std::pair{AdvantageEstimator::kGdpo, std::string_view("gdpo")},
    std::pair{AdvantageEstimator::kGpg, std::string_view("gpg")},
    std::pair{AdvantageEstimator::kGrpo, std::string_view("grpo")},
    std::pair{AdvantageEstimator::kGrpo,
              std::string_view("grpo_vectorized")},  // verl's faster code for the same
    std::pair{AdvantageEstimator::kGrpoPassk, std::string_view("grpo_passk")},
    std::pair{AdvantageEstimator::kOpo, std::string_view("opo")},
    std::pair{AdvantageEstimator::kOptimalTokenBaseline,
              std::string_view("optimal_token_baseline")},
    std::pair{AdvantageEstimator::kReinforcePlusPlus, std::string_view("reinforce_plus_plus")},
    std::pair{AdvantageEstimator::kReinforcePlusPlusBaseline,
              std::string_view("reinforce_plus_plus_baseline")},
    std::pair{AdvantageEstimator::kRemax, std::string_view("remax")},
    std::pair{AdvantageEstimator::kRloo, std::string_view("rloo")},
    std::pair{AdvantageEstimator::kRloo, std::string_view("rloo_vectorized")},
    std::pair{AdvantageEstimator::kTirOptimalTokenBaseline,
              std::string_view("tir_optimal_token_baseline")},
};

}  // namespace

runtime::Result<AdvantageEstimator> parse_advantage_estimator(std::string_view name) {
  std::string known;
  for (const auto& [estimator, text] : kEstimatorNames) {
    if (text == name) return estimator;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  if (find_own_advantages(name) != nullptr) return AdvantageEstimator::kOwn;
  for (const std::string& own : added_choices("algorithm.adv_estimator")) known += ", " + own;
  return runtime::invalid_argument(
      "advantage estimator \"" + std::string(name) + "\" is none of " + known +
      "; one of your own is registered in main, before run(), for workers too");
}

std::string_view to_string(AdvantageEstimator estimator) {
  const auto found = std::find_if(kEstimatorNames.begin(), kEstimatorNames.end(),
                                  [&](const auto& entry) { return entry.first == estimator; });
  return found == kEstimatorNames.end() ? "own" : found->second;
}

bool is_per_token(AdvantageEstimator estimator) {
  return estimator == AdvantageEstimator::kGae ||
         estimator == AdvantageEstimator::kReinforcePlusPlus ||
         estimator == AdvantageEstimator::kRemax || needs_probabilities(estimator);
}

bool needs_probabilities(AdvantageEstimator estimator) {
  return estimator == AdvantageEstimator::kOptimalTokenBaseline ||
         estimator == AdvantageEstimator::kTirOptimalTokenBaseline;
}

// Where a baseline was taken off, it is all the normalisation that there is.
bool is_whitened(AdvantageEstimator estimator) {
  return estimator == AdvantageEstimator::kGae ||
         estimator == AdvantageEstimator::kReinforcePlusPlus;
}

std::int64_t group_size_min(AdvantageEstimator estimator) {
  switch (estimator) {
    case AdvantageEstimator::kGrpoPassk:
    case AdvantageEstimator::kRloo:
    case AdvantageEstimator::kOpo:
    case AdvantageEstimator::kReinforcePlusPlusBaseline:
    case AdvantageEstimator::kOptimalTokenBaseline:
    case AdvantageEstimator::kTirOptimalTokenBaseline:
    case AdvantageEstimator::kCodapo:
    case AdvantageEstimator::kDisco: return 2;
    // GRPO's and GPG's response alone keeps its score, in verl too.
    case AdvantageEstimator::kGrpo:
    case AdvantageEstimator::kGdpo:
    case AdvantageEstimator::kGpg:
    case AdvantageEstimator::kReinforcePlusPlus:
    case AdvantageEstimator::kRemax:
    case AdvantageEstimator::kGae:
    case AdvantageEstimator::kOwn: break;
  }
  return 1;
}

}  // namespace rl
