// The coefficient of the KL in the reward, fixed or following a target.
#pragma once

#include <cstdint>

namespace rl {

struct KlControllerOptions {
  double coefficient = 0.001;  // the first one
  bool adaptive = false;
  double target = 0.1;  // nats per token that an adaptive one steers to, above 0
  double horizon =
      10'000;  // samples after which an error of 20 % has changed the coefficient by 20 %, above 0
};

/// Ziegler et al. 2019, arXiv:1909.08593, section 2.2: coefficient *= 1 + clip(kl / target - 1,
/// -0.2, 0.2) * samples / horizon.
double next_kl_coefficient(const KlControllerOptions& options, double coefficient, double kl,
                           std::int64_t samples);

}  // namespace rl
