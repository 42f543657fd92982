#include "rl/worker/variance_proxy.h"

#include <algorithm>
#include <cmath>

namespace rl {

Metrics variance_parts(const RolloutBatch& batch, const Probabilities& probabilities,
                       std::span<const float> advantages, const SampleUse& use,
                       std::int64_t samples_total) {
  double advantage_squares = 0.0, norms = 0.0, power = 0.0;
  std::size_t token = 0;
  for (std::int64_t sample = 0; sample < batch.samples(); ++sample) {
    const std::int64_t length = batch.learned_tokens(sample);
    double advantage = 0.0, norm = 0.0;
    for (std::int64_t i = 0; i < length; ++i, ++token) {
      advantage += double{advantages[token]} / static_cast<double>(length);
      norm += 1.0 - 2.0 * std::exp(double{probabilities.logprobs[token]}) +
              double{probabilities.squares[token]};
    }
    const double times = use.repeats.empty()
                             ? 1.0
                             : static_cast<double>(use.repeats[static_cast<std::size_t>(sample)]);
    advantage_squares += times * advantage * advantage;
    norms += times * norm;
    power += times * advantage * advantage * std::max(norm, 0.0);
  }
  const double samples = std::max(1.0, static_cast<double>(samples_total));
  return {{"variance_proxy/expected_a_squared", advantage_squares / samples},
          {"variance_proxy/expected_w", norms / samples},
          {"variance_proxy/proxy2_total_power", power / samples}};
}

void finish_variance_proxies(Metrics& metrics, std::int64_t samples) {
  const auto power = metrics.find("variance_proxy/proxy2_total_power");
  const auto norm = metrics.find("actor/grad_norm");
  if (power == metrics.end() || norm == metrics.end()) return;
  const double signal = norm->second * norm->second;
  metrics["variance_proxy/proxy1_signal_strength"] = signal;
  metrics["variance_proxy/proxy3_pure_noise"] =
      samples > 1 ? std::max(0.0, (power->second - signal) / static_cast<double>(samples - 1))
                  : 0.0;
}

}  // namespace rl
