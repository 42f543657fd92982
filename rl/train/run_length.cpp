#include "rl/train/run_length.h"

#include <algorithm>

#include "runtime/core/log.h"

namespace rl {

runtime::Result<RunLength> RunLength::from_config(const Config& config) {
  ConfigReader read(config);
  const RunLength length{.steps = read.find_int("trainer.total_training_steps"), .epochs = read.get_int("trainer.total_epochs"), .epochs_are_set = config.is_set("trainer.total_epochs")};
  if (!read.status().ok()) return read.status();
  return length;
}

std::int64_t RunLength::scheduled(std::int64_t steps_an_epoch) const { return steps.value_or(epochs * steps_an_epoch); }

std::int64_t RunLength::last(std::int64_t steps_an_epoch) const {
  const std::int64_t asked = scheduled(steps_an_epoch), there = epochs * steps_an_epoch;
  if (!epochs_are_set || asked <= there) return asked;
  LOG(info, "trainer.total_epochs={} ends the run after {} of trainer.total_training_steps={}", epochs, there, asked);
  return there;
}

}  // namespace rl
