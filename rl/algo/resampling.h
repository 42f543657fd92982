// PF-PPO: samples resampled by their rewards, so that noise between the extremes is seen less.
// Plain lists.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/core/result.h"

namespace rl {

/// How likely a sample is drawn again, by its score s; verl's `algorithm.pf_ppo.reweight_method`.
enum class ReweightMethod {
  kPow,        // "pow": |s|^weight_pow
  kMaxMin,     // "max_min": only the best and the worst, alike
  kMaxRandom,  // "max_random": 0.4 for the best, 0.1 for every other
};

/// kInvalidArgument names the three.
runtime::Result<ReweightMethod> parse_reweight_method(std::string_view name);

/// Weights of samples, above 0; not normalised. Shen et al. 2024, arXiv:2409.06957, section 3.
std::vector<double> resampling_weights(std::span<const double> scores, ReweightMethod method,
                                       double weight_pow);

/// As many draws with replacement as there are weights: how often each was drawn. Equal seeds draw
/// alike.
std::vector<std::int32_t> resample(std::span<const double> weights, std::uint64_t seed);

}  // namespace rl
