#include "rl/run/run_length.h"

#include <limits>

#include "runtime/core/log.h"

namespace rl {
namespace {

// More than can be counted are as many as can.
std::int64_t steps_of(std::int64_t epochs, std::int64_t steps_an_epoch) {
  std::int64_t steps = 0;
  return __builtin_mul_overflow(epochs, steps_an_epoch, &steps)
             ? std::numeric_limits<std::int64_t>::max()
             : steps;
}

}  // namespace

runtime::Result<RunLength> RunLength::from_config(const Config& config) {
  ConfigReader read(config);
  RunLength length{.steps = read.find_int("trainer.total_training_steps"),
                   .epochs_are_set = config.is_set("trainer.total_epochs")};
  if (!length.steps || length.epochs_are_set)
    length.epochs = read.get_int("trainer.total_epochs");  // else it may have been deleted
  if (!read.status().ok()) return read.status();
  return length;
}

std::int64_t RunLength::scheduled(std::int64_t steps_an_epoch) const {
  return steps.value_or(steps_of(epochs, steps_an_epoch));
}

std::int64_t RunLength::last(std::int64_t steps_an_epoch) const {
  const std::int64_t asked = scheduled(steps_an_epoch), there = steps_of(epochs, steps_an_epoch);
  if (!epochs_are_set || asked <= there) return asked;
  LOG(info, "trainer.total_epochs={} ends the run after {} of trainer.total_training_steps={}",
      epochs, there, asked);
  return there;
}

}  // namespace rl
