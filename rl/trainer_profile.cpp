// Steps that are profiled: see StepProfiler.
#include "rl/trainer.h"
#include "rl/worker/step_profiler.h"

namespace rl {

runtime::Result<Metrics> Trainer::step() {
  runtime::Result<Metrics> metrics = profiled_step();
  if (metrics.ok() && !lost_.ok()) return lost_;
  return metrics;
}

runtime::Result<Metrics> Trainer::profiled_step() {
  const runtime::Status ready = begin();
  if (!ready.ok()) return ready;
  const std::int64_t number = steps_done_ + 1;
  profiler_.before(number, [this] {
    std::vector<ProfiledGroup> groups{profiled("policy", policy_)};
    if (!critic_.empty()) groups.push_back(profiled("critic", critic_));
    groups.push_back(profiled("reward", reward_));
    if (!reference_.empty()) groups.push_back(profiled("reference", reference_));
    for (Teacher& teacher : teachers_) groups.push_back(profiled(teacher.role(), teacher.group));
    return groups;
  });
  runtime::Result<Metrics> metrics = take_step();
  if (metrics.ok()) profiler_.after(number);
  return metrics;
}

}  // namespace rl
