#include "rl/run/rl/skipped_updates.h"

#include <cmath>

#include "runtime/core/log.h"

namespace rl {

SkippedUpdates::Seen SkippedUpdates::observe(const Metrics& metrics, std::int64_t mini_batches,
                                             std::int64_t step) {
  Seen seen;
  for (const char* role : {"actor", "critic"}) {
    const auto found = metrics.find(std::string(role) + "/skipped_updates");
    if (found == metrics.end()) continue;
    const std::int64_t skipped = std::lround(found->second);  // a sum of the workers' shares
    if (skipped > 0)
      LOG(warn,
          "step {}: {} update(s) of the {} left out, since their gradient was not finite: is its "
          "optim.lr too high?",
          step, skipped, role);
    LostWeights& weights = lost_weights_[role];
    const runtime::Status lost =
        weights.observe(step, skipped > 0 && skipped >= mini_batches * passes_.at(role), role);
    if (!lost.ok()) seen.lost = lost;
    seen.losing = seen.losing || weights.losing();
  }
  return seen;
}

}  // namespace rl
