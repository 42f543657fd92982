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
          "step {}: skipped {} update(s) of the {}, since their gradient was not finite: is its "
          "optim.lr too high?",
          step, skipped, role);
    DivergenceDetector& detector = detectors_[role];
    const bool updated = skipped == 0 || skipped < mini_batches * passes_.at(role);
    const runtime::Status diverged = detector.observe(step, updated, role);
    if (!diverged.ok()) seen.diverged = diverged;
    seen.diverging = seen.diverging || detector.diverging();
  }
  return seen;
}

}  // namespace rl
