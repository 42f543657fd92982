#include "rl/run/divergence_detector.h"

namespace rl {

runtime::Status DivergenceDetector::observe(std::int64_t step, bool updated,
                                            const std::string& whose) {
  steps_without_update_ = updated ? 0 : steps_without_update_ + 1;
  if (steps_without_update_ < kStepsMax) return {};
  return runtime::task_failed(
      "step " + std::to_string(step) + ": the " + whose + " had no finite gradient in " +
      std::to_string(steps_without_update_) +
      " consecutive steps: training has diverged. Lower its optim.lr, and start again from the "
      "beginning (trainer.resume_mode=disable) or from an earlier checkpoint "
      "(trainer.resume_from_path)");
}

}  // namespace rl
