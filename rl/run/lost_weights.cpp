#include "rl/run/lost_weights.h"

namespace rl {

runtime::Status LostWeights::observe(std::int64_t step, bool nothing_taken,
                                     const std::string& whose) {
  steps_in_a_row_ = nothing_taken ? steps_in_a_row_ + 1 : 0;
  if (steps_in_a_row_ < kStepsMax) return {};
  return runtime::task_failed(
      "step " + std::to_string(step) + ": in " + std::to_string(steps_in_a_row_) +
      " steps in a row the " + whose +
      " had no finite gradient: its weights are lost. Lower its optim.lr, and begin anew "
      "(trainer.resume_mode=disable) or from an earlier checkpoint (trainer.resume_from_path)");
}

}  // namespace rl
