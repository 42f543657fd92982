#include "rl/run/gradient_leaves.h"

#include <string>

namespace rl {

runtime::Status check_gradient_leaves(const Config& config, std::int64_t leaves,
                                      std::int64_t workers) {
  if (leaves == 0 || leaves >= workers) return {};
  return config.out_of_range(
      "trainer.gradient_leaves",
      "at least the " + std::to_string(workers) + " workers, or some would have nothing to learn");
}

}  // namespace rl
