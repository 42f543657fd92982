#include "rl/algo/kl_controller.h"

#include <algorithm>

namespace rl {

double next_kl_coefficient(const KlControllerOptions& options, double coefficient, double kl,
                           std::int64_t samples) {
  if (!options.adaptive) return coefficient;
  const double error = std::clamp(kl / options.target - 1.0, -0.2, 0.2);
  return coefficient * (1.0 + error * static_cast<double>(samples) / options.horizon);
}

}  // namespace rl
