#include "rl/algo/resampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "rl/data/random.h"

namespace rl {
namespace {

constexpr double kWeightMin = 1e-8;

double uniform(SplitMix& random) { return static_cast<double>(random.next() >> 11) * 0x1.0p-53; }

}  // namespace

runtime::Result<ReweightMethod> parse_reweight_method(std::string_view name) {
  if (name == "pow") return ReweightMethod::kPow;
  if (name == "max_min") return ReweightMethod::kMaxMin;
  if (name == "max_random") return ReweightMethod::kMaxRandom;
  return runtime::invalid_argument("reweight method \"" + std::string(name) +
                                   "\" is none of pow, max_min, max_random");
}

std::vector<double> resampling_weights(std::span<const double> scores, ReweightMethod method,
                                       double weight_pow) {
  std::vector<double> weights;
  if (scores.empty()) return weights;
  const auto [worst, best] = std::minmax_element(scores.begin(), scores.end());
  for (const double score : scores) {
    double weight = 0.0;
    switch (method) {
      case ReweightMethod::kPow: weight = std::pow(std::abs(score), weight_pow); break;
      case ReweightMethod::kMaxMin: weight = score == *worst || score == *best ? 1.0 : 0.0; break;
      case ReweightMethod::kMaxRandom: weight = score == *best ? 0.4 : 0.1; break;
    }
    weights.push_back(weight + kWeightMin);
  }
  return weights;
}

std::vector<std::int32_t> resample(std::span<const double> weights, std::uint64_t seed) {
  std::vector<double> upto(weights.size());
  std::partial_sum(weights.begin(), weights.end(), upto.begin());
  SplitMix random(seed);
  std::vector<std::int32_t> repeats(weights.size(), 0);
  for (std::size_t draw = 0; draw < weights.size(); ++draw) {
    const auto place =
        std::upper_bound(upto.begin(), upto.end() - 1, uniform(random) * upto.back());
    ++repeats[static_cast<std::size_t>(place - upto.begin())];
  }
  return repeats;
}

}  // namespace rl
